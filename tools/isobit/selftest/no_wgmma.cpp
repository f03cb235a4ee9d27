// Stands in for chain_wgmma.cu in a build without its architectures.
#include "selftest/chain_kernels.h"

namespace isobit::cli {

ChainKernel wgmma_kernel(isobit_dtype) { return {}; }

}  // namespace isobit::cli
