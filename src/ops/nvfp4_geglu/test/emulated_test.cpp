// The mma.sync and WGMMA kernels in the PTX interpreter, against the CPU backend byte for byte: no GPU needed.
#include <gtest/gtest.h>

#include "nvfp4/test/emulated.h"
#include "ops/nvfp4_geglu/test/problem.h"

namespace isobit::nvfp4_geglu::test {
namespace {

void expect_cpu_bytes(const Shape& shape) {
  isobit::test::expect_cpu_bytes_emulated<Problem>(ISOBIT_BINARY_DIR "/ptx/nvfp4_geglu/sm80", "sm80", shape);
}

void expect_cpu_bytes_wgmma(const Shape& shape) {
  isobit::test::expect_cpu_bytes_emulated<Problem>(ISOBIT_BINARY_DIR "/ptx/nvfp4_geglu/sm90", "sm90", shape);
}

// Other layouts than the kernel's own, padded rows, scales in device memory, any byte as a scale.
Shape with_everything(int64_t rows, int64_t width) {
  return {.rows = rows,
          .width = width,
          .k = 320,
          .x_layout = ISOBIT_NVFP4_LINEAR,
          .out_layout = ISOBIT_NVFP4_8X4,
          .padding = 16,
          .device_scales = true,
          .x_scale = 1e-4f,
          .up_scale = 0.75f,
          .values = ScaleValues::kAny};
}

TEST(Nvfp4GegluEmulated, WholeAndRaggedTiles) {
  expect_cpu_bytes({.rows = 128, .width = 64, .k = 64});
  expect_cpu_bytes({.rows = 5, .width = 80, .k = 208, .gelu = ISOBIT_GELU_ERF, .out_scale = 30});
  expect_cpu_bytes({.rows = 130,
                    .width = 16,
                    .k = 16,
                    .x_layout = ISOBIT_NVFP4_8X4,
                    .weight_layout = ISOBIT_NVFP4_LINEAR,
                    .out_layout = ISOBIT_NVFP4_8X4});
}

TEST(Nvfp4GegluEmulated, StridesAlignmentAndDeviceScales) {
  expect_cpu_bytes({.rows = 70,
                    .width = 48,
                    .k = 80,
                    .x_layout = ISOBIT_NVFP4_LINEAR,
                    .weight_layout = ISOBIT_NVFP4_8X4,
                    .out_layout = ISOBIT_NVFP4_LINEAR,
                    .padding = 1,
                    .offset = 3,
                    .device_scales = true,
                    .x_scale = 0.01f,
                    .gate_scale = 2.5f,
                    .up_scale = 0.75f});
}

TEST(Nvfp4GegluEmulated, AnyScaleByte) {
  expect_cpu_bytes({.rows = 40, .width = 32, .k = 48, .x_scale = 1e-4f, .values = ScaleValues::kAny});
  expect_cpu_bytes({.rows = 9, .width = 16, .k = 16, .device_scales = true, .up_scale = -1});
}

// Four multiprocessors: the blocks have 64 weight rows if `width` is small, else 256.
TEST(Nvfp4GegluEmulatedFewRows, EveryTile) {
  for (const int64_t rows : {1, 8, 13, 16, 17, 32}) {
    expect_cpu_bytes_wgmma({.rows = rows, .width = 80, .k = 64, .gelu = ISOBIT_GELU_ERF, .out_scale = 30});
    expect_cpu_bytes_wgmma({.rows = rows, .width = 496, .k = 128});
  }
}

TEST(Nvfp4GegluEmulatedFewRows, MoreStagesThanTheRingHas) {
  expect_cpu_bytes_wgmma({.rows = 3, .width = 496, .k = 832});
  expect_cpu_bytes_wgmma({.rows = 11, .width = 48, .k = 1216});
  expect_cpu_bytes_wgmma({.rows = 27, .width = 496, .k = 832});
}

TEST(Nvfp4GegluEmulatedFewRows, LayoutsStridesAndAnyScaleByte) {
  for (const int64_t rows : {5, 15, 31}) expect_cpu_bytes_wgmma(with_everything(rows, 112));
}

// Four multiprocessors, so the tiles are chosen as named, and blocks have several of them. Few rows come here if a
// block cannot keep them.
TEST(Nvfp4GegluEmulatedWgmma, SmallTiles) {
  expect_cpu_bytes_wgmma({.rows = 3, .width = 16, .k = 4160});
  expect_cpu_bytes_wgmma({.rows = 20, .width = 80, .k = 2112, .gelu = ISOBIT_GELU_ERF, .out_scale = 30});
  expect_cpu_bytes_wgmma({.rows = 20, .width = 496, .k = 2112});
  for (const int64_t width : {144, 496}) expect_cpu_bytes_wgmma({.rows = 60, .width = width, .k = 64});
}

TEST(Nvfp4GegluEmulatedWgmma, LargeTiles) {
  for (const int64_t rows : {125, 207, 221, 245, 253}) expect_cpu_bytes_wgmma({.rows = rows, .width = 496, .k = 64});
  expect_cpu_bytes_wgmma({.rows = 125, .width = 144, .k = 832});  // more stages than the ring has
  expect_cpu_bytes_wgmma({.rows = 125, .width = 496, .k = 192});  // several tiles of several stages
}

// Six tiles by four blocks: the last two are cut into four of fewer tokens.
TEST(Nvfp4GegluEmulatedWgmma, SmallerTilesInTheLastRound) {
  for (const int64_t rows : {201, 221, 245, 253}) expect_cpu_bytes_wgmma({.rows = rows, .width = 336, .k = 128});
}

// 200 tokens and K a multiple of 256: tiles whose stages are whole rounds of the ring. The last ones have 160.
TEST(Nvfp4GegluEmulatedWgmma, WholeRounds) {
  expect_cpu_bytes_wgmma({.rows = 199, .width = 336, .k = 256});
  expect_cpu_bytes_wgmma({.rows = 197, .width = 336, .k = 512, .gelu = ISOBIT_GELU_ERF, .out_scale = 30});
}

TEST(Nvfp4GegluEmulatedWgmma, LayoutsStridesAndAnyScaleByte) { expect_cpu_bytes_wgmma(with_everything(70, 48)); }

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
