// The CPU backend against the tensor-core model (bytes) and against fp64 (error).
#include <gtest/gtest.h>

#include <cmath>

#include "ops/nvfp4_geglu/reference.h"
#include "ops/nvfp4_geglu/test/problem.h"

namespace isobit::nvfp4_geglu::test {
namespace {

void expect_model(const Shape& shape, uint64_t seed = 1) {
  Problem problem(shape, seed);
  ASSERT_EQ(problem.run_cpu(), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(problem.arena.stray_write(), "");
  EXPECT_EQ(problem.out.dirty_padding(), "");
  isobit::test::Random random(seed + 77);
  for (int i = 0; i < 12; ++i) {
    const int64_t row = random.bits() % shape.rows, block = random.bits() % (shape.width / 16);
    ASSERT_EQ(problem.out_block(row, block), problem.model_block(row, block)) << row << ", " << block;
  }
}

TEST(Nvfp4GegluCpu, IsTheTensorCoreModel) {
  expect_model({.rows = 5, .width = 48, .k = 16});
  expect_model({.rows = 33, .width = 80, .k = 80, .gelu = ISOBIT_GELU_ERF, .x_scale = 0.01f, .out_scale = 40});
  expect_model({.rows = 130,
                .width = 16,
                .k = 272,
                .x_layout = ISOBIT_NVFP4_8X4,
                .weight_layout = ISOBIT_NVFP4_LINEAR,
                .out_layout = ISOBIT_NVFP4_8X4});
  expect_model({.rows = 3,
                .width = 64,
                .k = 1040,
                .x_layout = ISOBIT_NVFP4_LINEAR,
                .out_layout = ISOBIT_NVFP4_LINEAR,
                .padding = 3,
                .offset = 1,
                .device_scales = true,
                .x_scale = 0.5f});
}

TEST(Nvfp4GegluCpu, AnyScaleByteIsTheModel) {
  for (const isobit_gelu gelu : {ISOBIT_GELU_TANH, ISOBIT_GELU_ERF}) {
    expect_model({.rows = 20, .width = 32, .k = 32, .gelu = gelu, .values = ScaleValues::kAny}, 3);
    expect_model({.rows = 20, .width = 32, .k = 16, .gelu = gelu, .x_scale = 1e-30f, .values = ScaleValues::kAny}, 4);
  }
}

// Two checkpoints' scales, one for both halves, is a well-known way to be wrong by a factor.
TEST(Nvfp4GegluCpu, GateAndUpHaveScalesOfTheirOwn) {
  const Shape shape = {.rows = 4, .width = 32, .k = 64, .gate_scale = 2.0f, .up_scale = 0.5f};
  expect_model(shape);
  Problem apart(shape), together({.rows = 4, .width = 32, .k = 64});
  ASSERT_EQ(apart.run_cpu(), ISOBIT_OK);
  ASSERT_EQ(together.run_cpu(), ISOBIT_OK);
  EXPECT_NE(apart.out_bytes(), together.out_bytes());
}

// The two forms of GELU are not taken for each other.
TEST(Nvfp4GegluCpu, FormsDiffer) {
  Shape shape = {.rows = 16, .width = 64, .k = 64};
  Problem tanh(shape);
  shape.gelu = ISOBIT_GELU_ERF;
  Problem erf(shape);
  ASSERT_EQ(tanh.run_cpu(), ISOBIT_OK);
  ASSERT_EQ(erf.run_cpu(), ISOBIT_OK);
  EXPECT_NE(tanh.out_bytes(), erf.out_bytes());
}

// gate = 12 and more once gave NaN through an overflowing exponential.
TEST(Nvfp4GegluCpu, LargeGatesAreFinite) {
  Problem problem({.rows = 8, .width = 32, .k = 256, .x_scale = 1e6f, .out_scale = 1e-14f});
  ASSERT_EQ(problem.run_cpu(), ISOBIT_OK);
  for (int64_t row = 0; row < 8; ++row) {
    for (int64_t block = 0; block < 2; ++block) EXPECT_NE(problem.out.scale(row, block), 0x7F);
  }
}

TEST(Nvfp4GegluCpu, UnusableDeviceScaleGivesNanBlocks) {
  for (int which = 0; which < 4; ++which) {
    Shape shape = {.rows = 3, .width = 48, .k = 32, .device_scales = true};
    float* const scales[] = {&shape.x_scale, &shape.gate_scale, &shape.up_scale, &shape.out_scale};
    *scales[which] = which % 2 == 0 ? -1.0f : NAN;
    Problem problem(shape);
    ASSERT_EQ(problem.run_cpu(), ISOBIT_OK);
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t block = 0; block < 3; ++block) EXPECT_EQ(problem.out.scale(row, block), 0x7F) << which;
    }
    EXPECT_EQ(problem.out.dirty_padding(), "");
  }
}

TEST(Nvfp4GegluCpu, PaddingIsZeroForEveryRowCount) {
  for (const int64_t rows : {1, 5, 32, 127, 128, 129}) {
    for (const isobit_nvfp4_layout layout : {ISOBIT_NVFP4_128X4, ISOBIT_NVFP4_8X4}) {
      Problem problem({.rows = rows, .width = 176, .k = 16, .out_layout = layout});
      ASSERT_EQ(problem.run_cpu(), ISOBIT_OK);
      EXPECT_EQ(problem.out.dirty_padding(), "");
    }
  }
}

TEST(Nvfp4GegluCpu, RowsDoNotDependOnEachOtherThreadsOrWorkspace) {
  Problem all({.rows = 20, .width = 80, .k = 96});
  ASSERT_EQ(all.run_cpu(1), ISOBIT_OK);
  const std::string bytes = all.out_bytes();
  ASSERT_EQ(all.run_cpu(3), ISOBIT_OK);
  EXPECT_EQ(all.out_bytes(), bytes);
  ASSERT_EQ(all.run_cpu(2, true), ISOBIT_OK);
  EXPECT_EQ(all.out_bytes(), bytes);
  Problem one({.rows = 1, .width = 80, .k = 96, .x_layout = ISOBIT_NVFP4_LINEAR, .out_layout = ISOBIT_NVFP4_LINEAR});
  one.x.copy_row(0, all.x, 15);
  for (int64_t row = 0; row < 160; ++row) one.weight.copy_row(row, all.weight, row);
  one.arena.seal();
  ASSERT_EQ(one.run_cpu(), ISOBIT_OK);
  EXPECT_EQ(one.out.row_bytes(0), all.out.row_bytes(15));
}

// The output's error is that of its own quantisation, 0.08 to 0.1 of relative L2.
TEST(Nvfp4GegluCpu, IsNearTheReference) {
  const Shape shape = {
      .rows = 16, .width = 64, .k = 512, .x_scale = 0.02f, .gate_scale = 0.9f, .up_scale = 1.2f, .out_scale = 30};
  for (const isobit_gelu gelu : {ISOBIT_GELU_TANH, ISOBIT_GELU_ERF}) {
    Shape with_form = shape;
    with_form.gelu = gelu;
    Problem problem(with_form);
    ASSERT_EQ(problem.run_cpu(), ISOBIT_OK);
    const std::vector<double> wanted = reference(problem.x.values(), problem.weight.values(), shape.rows, shape.width,
                                                 shape.k, 0.02 * 0.9, 0.02 * 1.2, gelu);
    const std::vector<double> got = problem.out.values();
    double error = 0, norm = 0, dot = 0, got_norm = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double value = got[i] / 30;
      error += (value - wanted[i]) * (value - wanted[i]);
      norm += wanted[i] * wanted[i];
      got_norm += value * value;
      dot += value * wanted[i];
    }
    EXPECT_LT(std::sqrt(error / norm), 0.11);
    EXPECT_GT(dot / std::sqrt(norm * got_norm), 0.99);
  }
}

TEST(Nvfp4GegluCpu, NoRowsIsNoWork) {
  Problem problem({});
  isobit_nvfp4_geglu_args args = problem.args();
  args.x.codes.shape[0] = args.x.scales.shape[0] = args.out.codes.shape[0] = args.out.scales.shape[0] = 0;
  EXPECT_EQ(isobit_nvfp4_geglu(&args, nullptr), ISOBIT_OK) << isobit_last_error();
}

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
