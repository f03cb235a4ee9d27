// The block-scaled kernels on a GPU of compute capability 10.0, 10.3 or 11.0, against the CPU backend byte for byte on
// sums that are exact in fp32. Written before any such GPU was at hand; on other GPUs there is nothing to run.
#include <gtest/gtest.h>

#include "nvfp4/scaled_launch.h"
#include "nvfp4/test/gpu.h"
#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

constexpr const char* kKernels[] = {"sm100", "sm100-pair"};
constexpr Shape kLarge = {.rows = 968, .columns = 1100, .k = 2048, .values = ScaleValues::kExact};
constexpr Shape kRagged = {.rows = 33, .columns = 77, .k = 448, .values = ScaleValues::kExact};

class Nvfp4LinearScaledGpu : public testing::Test {
 protected:
  void SetUp() override {
    DeviceProperties properties;
    ASSERT_TRUE(runtime().properties(0, &properties).ok()) << isobit_last_error();
    if (!has_scaled_tiles(properties.capability)) GTEST_SKIP() << "device 0 is not of SM100, SM103 or SM110";
  }
};

TEST_F(Nvfp4LinearScaledGpu, ExactSums) {
  for (const char* const kernel : kKernels) {
    isobit::test::expect_cpu_bytes_on_gpu<Problem>({kernel}, kLarge);
    isobit::test::expect_cpu_bytes_on_gpu<Problem>({kernel}, kRagged);
  }
}

TEST_F(Nvfp4LinearScaledGpu, CapturedOnTheFirstCall) {
  for (const char* const kernel : kKernels) isobit::test::expect_cpu_bytes_of_graph<Problem>(kernel, kRagged);
}

}  // namespace
}  // namespace isobit::nvfp4_linear::test
