// The kernels on a GPU, against the CPU backend byte for byte (compute capability 9.0).
#include <gtest/gtest.h>

#include "nvfp4/test/gpu.h"
#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

void expect_cpu_bytes(const Shape& shape) { isobit::test::expect_cpu_bytes_on_gpu<Problem>({"sm80"}, shape); }
void expect_cpu_bytes_of_both(const Shape& shape) {
  isobit::test::expect_cpu_bytes_on_gpu<Problem>({"sm90", "sm80"}, shape);
}

TEST(Nvfp4LinearGpu, EveryRaggedness) {
  for (const int64_t rows : {1, 5, 32, 127, 128, 129}) {
    for (const int64_t columns : {1, 8, 127, 131, 464}) {
      for (const int64_t k : {16, 80, 1040}) {
        expect_cpu_bytes({.rows = rows, .columns = columns, .k = k, .x_scale = 0.3f});
        expect_cpu_bytes({.rows = rows,
                          .columns = columns,
                          .k = k,
                          .dtype = ISOBIT_BF16,
                          .weight_scale = 0.7f,
                          .values = ScaleValues::kAny});
      }
    }
  }
}

TEST(Nvfp4LinearGpu, LayoutsStridesAndAlignment) {
  constexpr isobit_nvfp4_layout kLayouts[] = {ISOBIT_NVFP4_LINEAR, ISOBIT_NVFP4_128X4, ISOBIT_NVFP4_8X4};
  for (const isobit_nvfp4_layout x : kLayouts) {
    for (const isobit_nvfp4_layout weight : kLayouts) {
      for (const size_t offset : {0, 1, 4, 8}) {
        expect_cpu_bytes({.rows = 150,
                          .columns = 201,
                          .k = 176,
                          .dtype = ISOBIT_BF16,
                          .x_layout = x,
                          .weight_layout = weight,
                          .padding = static_cast<int64_t>(offset),
                          .offset = offset,
                          .out_offset = static_cast<int64_t>(offset),
                          .device_scales = true,
                          .x_scale = 1.5f});
      }
    }
  }
}

TEST(Nvfp4LinearGpu, WgmmaTiles) {
  for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP32}) {
    for (const int64_t rows : {1, 8, 9, 32, 64, 65, 104, 112, 127, 128, 129, 248, 249, 500}) {
      for (const int64_t columns : {2, 130, 464}) {
        expect_cpu_bytes_of_both({.rows = rows, .columns = columns, .k = 192, .dtype = dtype, .x_scale = 0.3f});
        expect_cpu_bytes_of_both({.rows = rows,
                                  .columns = columns,
                                  .k = 128,
                                  .dtype = dtype,
                                  .x_layout = ISOBIT_NVFP4_8X4,
                                  .padding = 16,
                                  .out_offset = 1,
                                  .device_scales = true,
                                  .values = ScaleValues::kAny});
      }
    }
  }
}

// Chains of products for up to 32 rows and 2,048 weight rows, and the tiles of few rows for others.
TEST(Nvfp4LinearGpu, FewRows) {
  for (int64_t rows = 1; rows <= 65; rows += 1 + rows % 5) {
    for (const int64_t columns : {14, 2048, 2050, 4164}) {
      expect_cpu_bytes_of_both({.rows = rows, .columns = columns, .k = 448, .dtype = ISOBIT_BF16, .x_scale = 1e-3f});
      expect_cpu_bytes_of_both({.rows = rows, .columns = columns, .k = 2112, .values = ScaleValues::kAny});
    }
  }
}

// The down projection of pi0.5's layers, its sums 16,384 long, and many tiles.
TEST(Nvfp4LinearGpu, DownProjection) {
  for (const int64_t rows : {1, 10, 32}) {
    expect_cpu_bytes_of_both({.rows = rows, .columns = 2048, .k = 16384, .dtype = ISOBIT_BF16, .x_scale = 1e-3f});
  }
  expect_cpu_bytes_of_both({.rows = 40, .columns = 256, .k = 16384, .dtype = ISOBIT_BF16, .x_scale = 1e-3f});
  expect_cpu_bytes_of_both({.rows = 968, .columns = 2048, .k = 256, .dtype = ISOBIT_BF16, .x_scale = 1e-3f});
}

TEST(Nvfp4LinearGpu, CapturedOnTheFirstCall) {
  for (const char* kernel : {"sm90", "sm80"}) {
    isobit::test::expect_cpu_bytes_of_graph<Problem>(kernel,
                                                     {.rows = 9, .columns = 200, .k = 128, .device_scales = true});
  }
}

}  // namespace
}  // namespace isobit::nvfp4_linear::test
