// The CPU backend against the tensor-core model (bytes) and against fp64 (error).
#include <gtest/gtest.h>

#include <cmath>

#include "numerics/bf16.h"
#include "numerics/bits.h"
#include "ops/nvfp4_linear/reference.h"
#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

void expect_model(const Shape& shape, uint64_t seed = 1) {
  Problem problem(shape, seed);
  ASSERT_EQ(problem.run_cpu(), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(problem.arena.stray_write(), "");
  isobit::test::Random random(seed + 77);
  for (int i = 0; i < 60; ++i) {
    const int64_t row = random.bits() % shape.rows, column = random.bits() % shape.columns;
    ASSERT_EQ(problem.out(row, column), problem.model(row, column)) << row << ", " << column << " k " << shape.k;
  }
}

TEST(Nvfp4LinearCpu, IsTheTensorCoreModel) {
  expect_model({.rows = 5, .columns = 70, .k = 16});
  expect_model({.rows = 33, .columns = 65, .k = 80, .dtype = ISOBIT_BF16, .x_scale = 0.013f, .weight_scale = 7.5f});
  expect_model(
      {.rows = 130, .columns = 96, .k = 272, .x_layout = ISOBIT_NVFP4_8X4, .weight_layout = ISOBIT_NVFP4_LINEAR});
  expect_model({.rows = 3,
                .columns = 64,
                .k = 1040,
                .x_layout = ISOBIT_NVFP4_LINEAR,
                .padding = 3,
                .offset = 1,
                .device_scales = true,
                .x_scale = 0.5f});
}

TEST(Nvfp4LinearCpu, AnyScaleByteIsTheModel) {
  for (const isobit_dtype dtype : {ISOBIT_FP32, ISOBIT_BF16}) {
    expect_model({.rows = 20, .columns = 70, .k = 32, .dtype = dtype, .values = ScaleValues::kAny}, 3);
    expect_model({.rows = 20, .columns = 70, .k = 16, .dtype = dtype, .values = ScaleValues::kAny}, 4);
  }
}

// A scale byte of 127 is NaN: its outputs are, and no other.
TEST(Nvfp4LinearCpu, NanScaleReachesItsOutputsAlone) {
  Problem problem({.rows = 4, .columns = 70, .k = 64});
  problem.x.set_scale(2, 1, 0x7F);
  problem.weight.set_scale(69, 3, 0xFF);
  problem.arena.seal();
  ASSERT_EQ(problem.run_cpu(), ISOBIT_OK) << isobit_last_error();
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t column = 0; column < 70; ++column) {
      const uint32_t bits = problem.out(row, column);
      EXPECT_EQ(bits == numerics::kNanBits, row == 2 || column == 69);
    }
  }
}

TEST(Nvfp4LinearCpu, UnusableDeviceScaleGivesNan) {
  for (const float bad : {0.0f, -1.0f, INFINITY, NAN}) {
    Problem problem(
        {.rows = 2, .columns = 3, .k = 16, .dtype = ISOBIT_BF16, .device_scales = true, .weight_scale = bad});
    ASSERT_EQ(problem.run_cpu(), ISOBIT_OK) << isobit_last_error();
    EXPECT_EQ(problem.out(), std::vector<uint32_t>(6, 0x7FFF));
  }
}

TEST(Nvfp4LinearCpu, RowsDoNotDependOnEachOtherThreadsOrWorkspace) {
  const Shape shape = {.rows = 20, .columns = 130, .k = 96};
  Problem all(shape);
  ASSERT_EQ(all.run_cpu(1), ISOBIT_OK);
  const std::vector<uint32_t> out = all.out();
  ASSERT_EQ(all.run_cpu(3), ISOBIT_OK);
  EXPECT_EQ(all.out(), out);
  ASSERT_EQ(all.run_cpu(2, true), ISOBIT_OK);
  EXPECT_EQ(all.out(), out);
  Problem one({.rows = 1, .columns = 130, .k = 96, .x_layout = ISOBIT_NVFP4_LINEAR});
  one.x.copy_row(0, all.x, 15);
  for (int64_t column = 0; column < 130; ++column) one.weight.copy_row(column, all.weight, column);
  one.arena.seal();
  ASSERT_EQ(one.run_cpu(), ISOBIT_OK);
  EXPECT_EQ(one.out(), std::vector<uint32_t>(out.begin() + 15 * 130, out.begin() + 16 * 130));
}

TEST(Nvfp4LinearCpu, IsNearTheReference) {
  const Shape shape = {.rows = 12, .columns = 40, .k = 2048, .x_scale = 0.25f, .weight_scale = 0.125f};
  Problem problem(shape);
  ASSERT_EQ(problem.run_cpu(), ISOBIT_OK);
  const std::vector<double> wanted =
      reference(problem.x.values(), problem.weight.values(), shape.rows, shape.columns, shape.k);
  double error = 0, norm = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double y = wanted[i] * 0.25 * 0.125;
    const double difference = static_cast<double>(numerics::bits_float(problem.out()[i])) - y;
    error += difference * difference;
    norm += y * y;
  }
  EXPECT_LT(std::sqrt(error / norm), 1e-5);
}

TEST(Nvfp4LinearCpu, NothingToDo) {
  Problem problem({.rows = 1, .columns = 1, .k = 16});
  isobit_nvfp4_linear_args args = problem.args();
  args.x.codes.shape[0] = args.x.scales.shape[0] = args.out.shape[0] = 0;
  EXPECT_EQ(isobit_nvfp4_linear(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  args = problem.args();
  args.weight.codes.shape[0] = args.weight.scales.shape[0] = args.out.shape[1] = 0;
  EXPECT_EQ(isobit_nvfp4_linear(&args, nullptr), ISOBIT_OK) << isobit_last_error();
}

}  // namespace
}  // namespace isobit::nvfp4_linear::test
