#include "device/mma_chains.cuh"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "selftest/chain_inputs.h"
#include "selftest/chain_kernels.h"

namespace isobit::cli {

ChainKernel mma_sync_kernel(isobit_dtype dtype) {
  return {dtype == ISOBIT_BF16 ? reinterpret_cast<const void*>(&device::mma_sync_chain<numerics::Bf16>)
                               : reinterpret_cast<const void*>(&device::mma_sync_chain<numerics::Fp16>),
          {ChainInputs::kColumns / 8, ChainInputs::kRows / 16, 32}};
}

}  // namespace isobit::cli
