#include "device/mma_chains.cuh"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "selftest/chain_inputs.h"
#include "selftest/chain_kernels.h"

namespace isobit::cli {

ChainKernel wgmma_kernel(isobit_dtype dtype) {
  return {dtype == ISOBIT_BF16 ? reinterpret_cast<const void*>(&device::wgmma_chain<numerics::Bf16, 16>)
                               : reinterpret_cast<const void*>(&device::wgmma_chain<numerics::Fp16, 16>),
          {ChainInputs::kColumns / 16, ChainInputs::kRows / 64, 128}};
}

}  // namespace isobit::cli
