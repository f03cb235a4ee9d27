// The kernels on a GPU, against the CPU backend byte for byte (compute capability 9.0).
#include <gtest/gtest.h>

#include "nvfp4/test/gpu.h"
#include "ops/nvfp4_geglu/test/problem.h"

namespace isobit::nvfp4_geglu::test {
namespace {

void expect_cpu_bytes(const Shape& shape) { isobit::test::expect_cpu_bytes_on_gpu<Problem>({"sm80"}, shape); }
void expect_cpu_bytes_of_both(const Shape& shape) {
  isobit::test::expect_cpu_bytes_on_gpu<Problem>({"sm90", "sm80"}, shape);
}

TEST(Nvfp4GegluGpu, EveryRaggedness) {
  for (const isobit_gelu gelu : {ISOBIT_GELU_TANH, ISOBIT_GELU_ERF}) {
    for (const int64_t rows : {1, 5, 32, 127, 128, 129}) {
      for (const int64_t width : {16, 160, 176, 704}) {
        for (const int64_t k : {16, 80, 1040}) {
          expect_cpu_bytes({.rows = rows, .width = width, .k = k, .gelu = gelu, .gate_scale = 1.3f, .out_scale = 9});
          expect_cpu_bytes(
              {.rows = rows, .width = width, .k = k, .gelu = gelu, .x_scale = 1e-4f, .values = ScaleValues::kAny});
        }
      }
    }
  }
}

TEST(Nvfp4GegluGpu, LayoutsStridesAndAlignment) {
  constexpr isobit_nvfp4_layout kLayouts[] = {ISOBIT_NVFP4_LINEAR, ISOBIT_NVFP4_128X4, ISOBIT_NVFP4_8X4};
  for (const isobit_nvfp4_layout x : kLayouts) {
    for (const isobit_nvfp4_layout weight : kLayouts) {
      for (const isobit_nvfp4_layout out : kLayouts) {
        for (const size_t offset : {0, 1, 4, 8}) {
          expect_cpu_bytes({.rows = 150,
                            .width = 112,
                            .k = 176,
                            .x_layout = x,
                            .weight_layout = weight,
                            .out_layout = out,
                            .padding = static_cast<int64_t>(offset),
                            .offset = offset,
                            .device_scales = true,
                            .up_scale = 0.4f});
        }
      }
    }
  }
}

TEST(Nvfp4GegluGpu, WgmmaTiles) {
  for (const isobit_gelu gelu : {ISOBIT_GELU_TANH, ISOBIT_GELU_ERF}) {
    for (const int64_t rows : {1, 8, 9, 32, 64, 65, 127, 128, 129, 200, 208, 223, 224, 247, 248, 249, 256, 500}) {
      for (const int64_t width : {16, 176, 704}) {
        expect_cpu_bytes_of_both(
            {.rows = rows, .width = width, .k = 192, .gelu = gelu, .up_scale = 1.3f, .out_scale = 9});
      }
      expect_cpu_bytes_of_both({.rows = rows,
                                .width = 208,
                                .k = 128,
                                .gelu = gelu,
                                .x_layout = ISOBIT_NVFP4_8X4,
                                .out_layout = ISOBIT_NVFP4_LINEAR,
                                .padding = 16,
                                .device_scales = true,
                                .x_scale = 1e-4f,
                                .values = ScaleValues::kAny});
    }
  }
}

// Every tile of few rows, and the shapes that it is for.
TEST(Nvfp4GegluGpu, FewRows) {
  for (int64_t rows = 1; rows <= 65; rows += 1 + rows % 5) {
    for (const int64_t width : {16, 1040, 9008}) {
      expect_cpu_bytes_of_both({.rows = rows, .width = width, .k = 448, .x_scale = 0.01f});
      expect_cpu_bytes_of_both({.rows = rows,
                                .width = width,
                                .k = 192,
                                .gelu = ISOBIT_GELU_ERF,
                                .x_layout = ISOBIT_NVFP4_LINEAR,
                                .out_layout = ISOBIT_NVFP4_8X4,
                                .padding = 16,
                                .device_scales = true,
                                .x_scale = 1e-4f,
                                .values = ScaleValues::kAny});
    }
  }
  expect_cpu_bytes_of_both({.rows = 10, .width = 4096, .k = 1024, .x_scale = 0.01f});
  expect_cpu_bytes_of_both({.rows = 32, .width = 16384, .k = 2048, .x_scale = 0.01f});
}

// The rows of pi0.5's prompts against a slice of its width: every block has several tiles.
TEST(Nvfp4GegluGpu, VisionLanguageRows) {
  for (const int64_t rows : {784, 816, 880, 968}) {
    expect_cpu_bytes_of_both({.rows = rows, .width = 4096, .k = 256, .x_scale = 0.01f});
    expect_cpu_bytes_of_both({.rows = rows, .width = 64, .k = 2048, .x_scale = 0.01f});
  }
}

TEST(Nvfp4GegluGpu, CapturedOnTheFirstCall) {
  for (const char* kernel : {"sm90", "sm80"}) {
    isobit::test::expect_cpu_bytes_of_graph<Problem>(kernel, {.rows = 9, .width = 96, .k = 128, .device_scales = true});
  }
}

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
