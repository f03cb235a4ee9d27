// In a build without CUDA no form of the matrix instruction has an image.
#include <gtest/gtest.h>

#include "selftest/chain_kernels.h"

namespace isobit::cli {
namespace {

TEST(SelftestWithoutCuda, NoFormHasAnImage) {
  for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP16}) {
    EXPECT_EQ(mma_sync_kernel(dtype).kernel, nullptr);
    EXPECT_EQ(wgmma_kernel(dtype).kernel, nullptr);
    EXPECT_EQ(tensor_core_kernel(dtype).kernel, nullptr);
  }
}

}  // namespace
}  // namespace isobit::cli
