#include "device/tensor_chains.cuh"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "selftest/chain_inputs.h"
#include "selftest/chain_kernels.h"

namespace isobit::cli {

ChainKernel tensor_core_kernel(isobit_dtype dtype) {
  return {dtype == ISOBIT_BF16 ? reinterpret_cast<const void*>(&device::tensor_chain<numerics::Bf16>)
                               : reinterpret_cast<const void*>(&device::tensor_chain<numerics::Fp16>),
          {ChainInputs::kColumns / device::kTensorChainColumns, ChainInputs::kRows / device::kTensorChainRows, 128}};
}

}  // namespace isobit::cli
