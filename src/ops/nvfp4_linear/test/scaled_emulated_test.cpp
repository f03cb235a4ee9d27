// The block-scaled kernels of SM100, SM103 and SM110 in the PTX interpreter: no GPU has run them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "numerics/bits.h"
#include "nvfp4/test/emulated.h"
#include "ops/nvfp4_linear/test/problem.h"
#include "ptx/runtime/emulation.h"

namespace isobit::nvfp4_linear::test {
namespace {

constexpr const char* kPtxFolder = ISOBIT_BINARY_DIR "/ptx/nvfp4_linear/sm100";
constexpr const char* kKernels[] = {"sm100", "sm100-pair"};
constexpr int kCapabilities[] = {100, 103, 110};

// Rows of a vision-language model of three cameras: 3 x 256 tokens and 16, 48, 112 or 200 of text.
constexpr int64_t kVisionLanguageRows[] = {784, 816, 880, 968};

void expect_cpu_bytes(const Shape& shape, const char* kernel = "sm100", int capability = 110) {
  isobit::test::expect_cpu_bytes_emulated<Problem>(kPtxFolder, kernel, shape, {.capability = capability});
}

// Sums of these operands are exact in any order: every byte is the CPU backend's.
Shape exact(int64_t rows, int64_t columns, int64_t k, isobit_dtype dtype = ISOBIT_BF16) {
  return {.rows = rows, .columns = columns, .k = k, .dtype = dtype, .values = ScaleValues::kExact};
}

TEST(Nvfp4LinearScaledEmulated, VisionLanguageRows) {
  for (const int64_t rows : kVisionLanguageRows) {
    for (const char* const kernel : kKernels) expect_cpu_bytes(exact(rows, 256, 256), kernel);
  }
}

TEST(Nvfp4LinearScaledEmulated, EveryCapabilityAndDtype) {
  for (const int capability : kCapabilities) {
    for (const char* const kernel : kKernels) {
      expect_cpu_bytes(exact(130, 300, 320, ISOBIT_FP32), kernel, capability);
      expect_cpu_bytes(exact(130, 264, 192, ISOBIT_BF16), kernel, capability);
    }
  }
}

TEST(Nvfp4LinearScaledEmulated, RaggedShapes) {
  for (const char* const kernel : kKernels) {
    expect_cpu_bytes(exact(1, 1, 64), kernel);
    expect_cpu_bytes(exact(127, 129, 128, ISOBIT_FP32), kernel);
    expect_cpu_bytes(exact(129, 521, 192), kernel);  // three column tiles: an odd number for pairs
    expect_cpu_bytes(exact(33, 96, 2048), kernel);   // twice round the ring
  }
}

TEST(Nvfp4LinearScaledEmulated, StridesAndDeviceScales) {
  Shape shape = exact(140, 176, 192);
  shape.device_scales = true;
  shape.x_scale = 0.3f;
  shape.weight_scale = 7;
  shape.padding = 32;
  expect_cpu_bytes(shape);
  shape.weight_scale = -1;
  expect_cpu_bytes(shape, "sm100-pair");
}

// Both the rule of SM90 (17 terms truncated to 2^-25 of the largest, the sum to 24 bits, once a block) and what the
// interpreter does (the exact sum of 64 products rounded once) stay this near to the exact sum, in units of the sum of
// the products' magnitudes.
double bound_of(int64_t k) {
  const double steps = static_cast<double>(k) / 16;
  return steps * (17 * 0x1p-25 + 0x1p-23) + steps / 4 * 0x1p-24;
}

TEST(Nvfp4LinearScaledEmulated, RandomOperandsWithinTheBound) {
  const Shape shape = {.rows = 70, .columns = 200, .k = 1024, .dtype = ISOBIT_FP32, .values = ScaleValues::kWide};
  Problem cpu(shape), gpu(shape);
  ASSERT_EQ(cpu.run_cpu(), ISOBIT_OK);
  ptx::EmulatedRuntime emulated(kPtxFolder, {.capability = 103});
  const ScopedRuntime scope(&emulated);
  const ptx::DeviceBuffer memory = emulated.upload(gpu.arena.bytes.data(), gpu.arena.bytes.size());
  const isobit_nvfp4_linear_args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
  ASSERT_EQ(isobit_nvfp4_linear(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  std::memcpy(gpu.arena.bytes.data(), memory.data(), gpu.arena.bytes.size());
  EXPECT_EQ(gpu.arena.stray_write(), "");
  const std::vector<double> x = cpu.x.values(), weight = cpu.weight.values();
  const double alpha = static_cast<double>(shape.x_scale) * static_cast<double>(shape.weight_scale);
  int64_t differing = 0;
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t column = 0; column < shape.columns; ++column) {
      double magnitude = 0;
      for (int64_t i = 0; i < shape.k; ++i) {
        magnitude +=
            std::fabs(x[static_cast<size_t>(row * shape.k + i)] * weight[static_cast<size_t>(column * shape.k + i)]);
      }
      const float a = numerics::bits_float(cpu.out(row, column)), b = numerics::bits_float(gpu.out(row, column));
      differing += a != b;
      EXPECT_LE(std::fabs(static_cast<double>(a) - static_cast<double>(b)), bound_of(shape.k) * magnitude * alpha);
    }
  }
  EXPECT_GT(differing, 0) << "the two rules are not the same one";
}

}  // namespace
}  // namespace isobit::nvfp4_linear::test
