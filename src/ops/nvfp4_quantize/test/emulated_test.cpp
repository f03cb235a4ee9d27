// The CUDA kernel in the PTX interpreter, against the CPU backend byte for byte: no GPU needed.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "ops/nvfp4_quantize/test/problem.h"
#include "ptx/runtime/emulation.h"

namespace isobit::nvfp4_quantize::test {
namespace {

constexpr const char* kPtxFolder = ISOBIT_BINARY_DIR "/ptx/nvfp4_quantize/cuda";

// Architectures whose images have the conversion to E2M1.
constexpr int kConverting[] = {100, 103, 110, 120, 121};

void expect_cpu_bytes(const Shape& shape, Values values, int capability = 90) {
  Problem cpu(shape, values, 7);
  const isobit_nvfp4_quantize_args cpu_args = cpu.args();
  ASSERT_EQ(isobit_nvfp4_quantize(&cpu_args, nullptr), ISOBIT_OK) << isobit_last_error();
  ptx::for_each_schedule(
      kPtxFolder, {.capability = capability}, [&](ptx::EmulatedRuntime& emulated, const ptx::ScheduleCase& schedule) {
        Problem gpu(shape, values, 7);
        const ptx::DeviceBuffer memory = emulated.upload(gpu.arena.data(), gpu.arena.size());
        const isobit_nvfp4_quantize_args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
        ASSERT_EQ(isobit_nvfp4_quantize(&args, nullptr), ISOBIT_OK) << isobit_last_error();
        std::memcpy(gpu.arena.data(), memory.data(), gpu.arena.size());
        EXPECT_TRUE(emulated.report().ok()) << schedule.name << ": " << emulated.report().text();
        EXPECT_TRUE(gpu.arena == cpu.arena) << schedule.name << ": " << shape.rows << " x " << shape.k << ": "
                                            << gpu.difference_from_reference() << gpu.stray_write();
      });
}

TEST(Nvfp4QuantizeEmulated, EveryDtypeAndLayout) {
  for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32}) {
    for (const isobit_nvfp4_layout layout : {ISOBIT_NVFP4_LINEAR, ISOBIT_NVFP4_128X4, ISOBIT_NVFP4_8X4}) {
      expect_cpu_bytes({.rows = 9, .k = 112, .dtype = dtype, .layout = layout, .global = 12.5f}, Values::kNormal);
      expect_cpu_bytes({.rows = 9, .k = 112, .dtype = dtype, .layout = layout, .global = 0.01f}, Values::kPatterns);
    }
  }
}

TEST(Nvfp4QuantizeEmulated, StridesAlignmentAndDeviceScale) {
  for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP32}) {
    expect_cpu_bytes({.rows = 5, .k = 48, .dtype = dtype, .padding = 8, .codes_padding = 8}, Values::kNormal);
    expect_cpu_bytes({.rows = 5,
                      .k = 48,
                      .dtype = dtype,
                      .padding = 3,
                      .codes_padding = 1,
                      .misalignment = 1,
                      .codes_offset = 3,
                      .device_global = true,
                      .global = 7},
                     Values::kNormal);
  }
}

// The conversion instructions give the bytes of the integer code, NaNs, zeros, ties and saturation included.
TEST(Nvfp4QuantizeEmulated, ConversionInstructions) {
  bool any = false;
  for (const int capability : kConverting) {
    const std::string path = std::string(kPtxFolder) + "/launch." + std::to_string(capability) + "f.ptx";
    std::ifstream file(path);
    if (!file) continue;  // not among the architectures of this build
    any = true;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(text.find("cvt.rn.satfinite.e2m1x2.f32"), std::string::npos) << path;
    for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32}) {
      expect_cpu_bytes({.rows = 9, .k = 112, .dtype = dtype, .global = 12.5f}, Values::kNormal, capability);
      expect_cpu_bytes({.rows = 9, .k = 112, .dtype = dtype, .global = 0.01f}, Values::kPatterns, capability);
    }
    expect_cpu_bytes({.rows = 2, .k = 32, .device_global = true, .global = -1}, Values::kNormal, capability);
  }
  if (!any) GTEST_SKIP() << "no architecture of this build has the conversion";
}

TEST(Nvfp4QuantizeEmulated, RowsInSeveralPieces) { expect_cpu_bytes({.rows = 1, .k = 4160}, Values::kNormal); }

TEST(Nvfp4QuantizeEmulated, UnusableDeviceScale) {
  expect_cpu_bytes({.rows = 2, .k = 32, .device_global = true, .global = -1}, Values::kNormal);
}

}  // namespace
}  // namespace isobit::nvfp4_quantize::test
