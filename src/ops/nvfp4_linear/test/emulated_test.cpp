// The mma.sync kernel in the PTX interpreter, against the CPU backend byte for byte: no GPU needed.
#include <gtest/gtest.h>

#include "core/test/nvfp4_emulated.h"
#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

void expect_cpu_bytes(const Shape& shape) {
  isobit::test::expect_cpu_bytes_emulated<Problem>(ISOBIT_BINARY_DIR "/ptx/nvfp4_linear/sm80", "sm80", shape);
}

TEST(Nvfp4LinearEmulated, WholeAndRaggedTiles) {
  expect_cpu_bytes({.rows = 128, .columns = 128, .k = 64});
  expect_cpu_bytes({.rows = 5, .columns = 131, .k = 208, .dtype = ISOBIT_BF16, .x_scale = 0.3f, .weight_scale = 1.7f});
  expect_cpu_bytes(
      {.rows = 130, .columns = 40, .k = 16, .x_layout = ISOBIT_NVFP4_8X4, .weight_layout = ISOBIT_NVFP4_LINEAR});
}

TEST(Nvfp4LinearEmulated, StridesAlignmentAndDeviceScales) {
  expect_cpu_bytes({.rows = 70,
                    .columns = 37,
                    .k = 80,
                    .dtype = ISOBIT_BF16,
                    .x_layout = ISOBIT_NVFP4_LINEAR,
                    .weight_layout = ISOBIT_NVFP4_8X4,
                    .padding = 1,
                    .offset = 3,
                    .out_offset = 1,
                    .device_scales = true,
                    .x_scale = 0.3f});
  expect_cpu_bytes({.rows = 3, .columns = 38, .k = 80, .padding = 8, .out_offset = 1});
}

TEST(Nvfp4LinearEmulated, AnyScaleByte) {
  expect_cpu_bytes({.rows = 40, .columns = 60, .k = 48, .values = ScaleValues::kAny});
  expect_cpu_bytes({.rows = 9, .columns = 9, .k = 16, .device_scales = true, .x_scale = -1});
}

}  // namespace
}  // namespace isobit::nvfp4_linear::test
