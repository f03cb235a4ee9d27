// The mma.sync and WGMMA kernels in the PTX interpreter, against the CPU backend byte for byte: no GPU needed.
#include <gtest/gtest.h>

#include "nvfp4/test/emulated.h"
#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

void expect_cpu_bytes(const Shape& shape) {
  isobit::test::expect_cpu_bytes_emulated<Problem>(ISOBIT_BINARY_DIR "/ptx/nvfp4_linear/sm80", "sm80", shape);
}

void expect_cpu_bytes_wgmma(const Shape& shape) {
  isobit::test::expect_cpu_bytes_emulated<Problem>(ISOBIT_BINARY_DIR "/ptx/nvfp4_linear/sm90", "sm90", shape);
}

// Another layout than the kernel's own, padded rows, an odd output, scales in device memory, any byte as a scale.
Shape with_everything(int64_t rows) {
  return {.rows = rows,
          .columns = 46,
          .k = 320,
          .dtype = ISOBIT_BF16,
          .x_layout = ISOBIT_NVFP4_LINEAR,
          .padding = 16,
          .out_offset = 1,
          .device_scales = true,
          .values = ScaleValues::kAny};
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

TEST(Nvfp4LinearEmulatedChain, EveryTile) {
  for (const int64_t rows : {1, 8, 13, 16, 31, 32}) {
    expect_cpu_bytes_wgmma({.rows = rows, .columns = 50, .k = 64, .dtype = ISOBIT_BF16});
    expect_cpu_bytes_wgmma({.rows = rows, .columns = 16, .k = 192});
  }
}

TEST(Nvfp4LinearEmulatedChain, MoreStagesThanTheRingsHave) {
  expect_cpu_bytes_wgmma({.rows = 3, .columns = 20, .k = 4160});
  expect_cpu_bytes_wgmma({.rows = 29, .columns = 32, .k = 3200, .dtype = ISOBIT_BF16});
}

TEST(Nvfp4LinearEmulatedChain, LayoutsStridesAndAnyScaleByte) {
  for (const int64_t rows : {5, 15, 29}) expect_cpu_bytes_wgmma(with_everything(rows));
}

// More weight rows than a chain of products takes.
TEST(Nvfp4LinearEmulatedFewRows, EveryTile) {
  expect_cpu_bytes_wgmma({.rows = 3, .columns = 2050, .k = 128});
  expect_cpu_bytes_wgmma({.rows = 11, .columns = 2050, .k = 64, .dtype = ISOBIT_BF16});
  expect_cpu_bytes_wgmma({.rows = 14, .columns = 2240, .k = 192, .values = ScaleValues::kAny});
  expect_cpu_bytes_wgmma({.rows = 30, .columns = 2050, .k = 64, .dtype = ISOBIT_BF16});
}

// Four multiprocessors, so blocks have several tiles.
TEST(Nvfp4LinearEmulatedWgmma, SmallTiles) {
  expect_cpu_bytes_wgmma({.rows = 30, .columns = 2050, .k = 2112, .dtype = ISOBIT_BF16});
  expect_cpu_bytes_wgmma({.rows = 60, .columns = 200, .k = 64, .dtype = ISOBIT_BF16});
  expect_cpu_bytes_wgmma({.rows = 33, .columns = 50, .k = 512});
}

// Of one warpgroup, for a long K.
TEST(Nvfp4LinearEmulatedWgmma, OneWarpgroup) {
  expect_cpu_bytes_wgmma({.rows = 40, .columns = 192, .k = 512});
  expect_cpu_bytes_wgmma({.rows = 120, .columns = 192, .k = 512, .dtype = ISOBIT_BF16});
  expect_cpu_bytes_wgmma({.rows = 200, .columns = 190, .k = 1024, .dtype = ISOBIT_BF16});
  for (const int64_t rows : {208, 216}) expect_cpu_bytes_wgmma({.rows = rows, .columns = 192, .k = 1280});
  expect_cpu_bytes_wgmma({.rows = 240, .columns = 192, .k = 1024});
}

TEST(Nvfp4LinearEmulatedWgmma, LargeTiles) {
  for (const int64_t rows : {100, 110}) expect_cpu_bytes_wgmma({.rows = rows, .columns = 500, .k = 64});
  expect_cpu_bytes_wgmma({.rows = 120, .columns = 1000, .k = 64, .dtype = ISOBIT_BF16});
  expect_cpu_bytes_wgmma({.rows = 240, .columns = 1000, .k = 64});
}

TEST(Nvfp4LinearEmulatedWgmma, LayoutsStridesAndAnyScaleByte) { expect_cpu_bytes_wgmma(with_everything(70)); }

}  // namespace
}  // namespace isobit::nvfp4_linear::test
