// One kernel per form of the matrix instruction, as addresses of host stubs; null where this build has no image of it.
#pragma once

#include <isobit/isobit.h>

#include <cstdint>

#include "device.h"

namespace isobit::cli {

struct ChainKernel {
  const void* kernel = nullptr;  // takes one device::MmaChains by value
  LaunchGrid grid;               // for the operands of ChainInputs
};

ChainKernel mma_sync_kernel(isobit_dtype dtype);     // m16n8k16, SM80 and newer
ChainKernel wgmma_kernel(isobit_dtype dtype);        // m64n16k16, SM90
ChainKernel tensor_core_kernel(isobit_dtype dtype);  // tcgen05 kind f16, m128n16k16: SM100, SM103, SM110

}  // namespace isobit::cli
