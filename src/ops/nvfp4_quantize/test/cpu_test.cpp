// The CPU backend against the reference, byte for byte, over layouts, shapes, strides and alignments.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/nvfp4_quantize/reference.h"
#include "ops/nvfp4_quantize/test/problem.h"

namespace isobit::nvfp4_quantize::test {
namespace {

constexpr isobit_dtype kDtypes[] = {ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32};
constexpr isobit_nvfp4_layout kLayouts[] = {ISOBIT_NVFP4_LINEAR, ISOBIT_NVFP4_128X4, ISOBIT_NVFP4_8X4};

void run(Problem* problem, int threads = 0) {
  problem->reset();
  isobit_nvfp4_quantize_args args = problem->args();
  args.threads = threads;
  ASSERT_EQ(isobit_nvfp4_quantize(&args, nullptr), ISOBIT_OK) << isobit_last_error();
}

void expect_reference(const Shape& shape, Values values) {
  Problem problem(shape, values, 11);
  run(&problem);
  EXPECT_EQ(problem.difference_from_reference(), "") << shape.rows << " x " << shape.k;
  EXPECT_EQ(problem.stray_write(), "") << shape.rows << " x " << shape.k;
}

TEST(Nvfp4QuantizeCpu, IsTheReference) {
  for (const isobit_dtype dtype : kDtypes) {
    for (const isobit_nvfp4_layout layout : kLayouts) {
      for (const Values values : {Values::kNormal, Values::kPatterns}) {
        expect_reference({.rows = 37, .k = 1040, .dtype = dtype, .layout = layout, .global = 12.5f}, values);
      }
    }
  }
}

// Padding that is left as it was found poisons the product that reads it.
TEST(Nvfp4QuantizeCpu, PaddingIsZeroForEveryRowCountAndRaggedBlocks) {
  for (const int64_t rows : {1, 5, 32, 127, 128, 129, 784, 968}) {
    for (const int64_t k : {16, 48, 64, 176}) {
      for (const isobit_nvfp4_layout layout : kLayouts)
        expect_reference({.rows = rows, .k = k, .layout = layout}, Values::kNormal);
    }
  }
  expect_reference({.rows = 3, .k = 1504}, Values::kNormal);
  expect_reference({.rows = 2, .k = 11008}, Values::kNormal);
}

// Views into wider buffers: a column slice of x, padded rows of codes.
TEST(Nvfp4QuantizeCpu, HonoursStridesAndAlignment) {
  for (const isobit_dtype dtype : kDtypes) {
    expect_reference(
        {.rows = 9, .k = 80, .dtype = dtype, .padding = 7, .codes_padding = 3, .misalignment = 1, .codes_offset = 5},
        Values::kNormal);
  }
}

TEST(Nvfp4QuantizeCpu, DeviceGlobalScaleIsTheSame) {
  Problem host({.rows = 5, .k = 64, .global = 3.25f}, Values::kNormal);
  Problem device({.rows = 5, .k = 64, .device_global = true, .global = 3.25f}, Values::kNormal);
  run(&host);
  run(&device);
  EXPECT_EQ(host.codes(), device.codes());
  EXPECT_EQ(host.scale_buffer(), device.scale_buffer());
}

TEST(Nvfp4QuantizeCpu, RowsDoNotDependOnEachOtherOrOnThreads) {
  Problem all({.rows = 200, .k = 4096, .layout = ISOBIT_NVFP4_LINEAR}, Values::kNormal);
  run(&all, 1);
  const std::vector<uint8_t> codes = all.codes(), scales = all.scale_buffer();
  run(&all, 3);
  EXPECT_EQ(all.codes(), codes);
  EXPECT_EQ(all.scale_buffer(), scales);
  Problem one({.rows = 1, .k = 4096, .layout = ISOBIT_NVFP4_LINEAR}, Values::kNormal);
  for (int64_t column = 0; column < 4096; ++column) one.set_x(0, column, all.x(150, column));
  run(&one);
  EXPECT_EQ(one.codes(), std::vector<uint8_t>(codes.begin() + 150 * 2048, codes.begin() + 151 * 2048));
  EXPECT_EQ(one.scale_buffer(), std::vector<uint8_t>(scales.begin() + 150 * 256, scales.begin() + 151 * 256));
}

TEST(Nvfp4QuantizeCpu, LeadingDimensionsAreRows) {
  Problem problem({.rows = 12, .k = 32}, Values::kNormal);
  problem.reset();
  isobit_nvfp4_quantize_args args = problem.args();
  for (isobit_tensor* tensor : {&args.x, &args.out.codes}) {
    const int64_t columns = tensor->shape[1];
    tensor->rank = 3;
    tensor->shape[0] = 4, tensor->shape[1] = 3, tensor->shape[2] = columns;
    tensor->stride[0] = 3 * columns, tensor->stride[1] = columns, tensor->stride[2] = 1;
  }
  ASSERT_EQ(isobit_nvfp4_quantize(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(problem.difference_from_reference(), "");
}

TEST(Nvfp4QuantizeCpu, NoRowsIsNoWork) {
  isobit_nvfp4_quantize_args args = Problem({.rows = 1, .k = 32}, Values::kNormal).args();
  args.x.shape[0] = args.out.codes.shape[0] = args.out.scales.shape[0] = 0;
  args.x.data = args.out.codes.data = args.out.scales.data = nullptr;
  EXPECT_EQ(isobit_nvfp4_quantize(&args, nullptr), ISOBIT_OK) << isobit_last_error();
}

// The two bounds hold the rule's measured relative L2 error on normal values.
TEST(Nvfp4QuantizeCpu, DequantizedValuesAreNear) {
  constexpr int64_t kRows = 16, kK = 512;
  Problem problem({.rows = kRows, .k = kK, .dtype = ISOBIT_FP32, .layout = ISOBIT_NVFP4_LINEAR, .global = 100},
                  Values::kNormal);
  Random random(5);
  for (int64_t i = 0; i < kRows * kK; ++i) problem.set_x(i / kK, i % kK, random.normal());
  run(&problem);
  const std::vector<double> values = reference_dequantize(problem.codes(), problem.scale_buffer(), kRows, kK, 0.01);
  double error = 0, norm = 0;
  for (int64_t i = 0; i < kRows * kK; ++i) {
    const double x = problem.x(i / kK, i % kK);
    error += (values[static_cast<size_t>(i)] - x) * (values[static_cast<size_t>(i)] - x);
    norm += x * x;
  }
  EXPECT_LT(std::sqrt(error / norm), 0.1);
  EXPECT_GT(std::sqrt(error / norm), 0.08);
}

}  // namespace
}  // namespace isobit::nvfp4_quantize::test
