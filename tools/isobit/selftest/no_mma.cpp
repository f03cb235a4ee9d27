// Stands in for chain_mma.cu in a build without its architectures.
#include "selftest/chain_kernels.h"

namespace isobit::cli {

ChainKernel mma_sync_kernel(isobit_dtype) { return {}; }

}  // namespace isobit::cli
