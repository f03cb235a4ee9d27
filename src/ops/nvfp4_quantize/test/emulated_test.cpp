// The CUDA kernel in the PTX interpreter, against the CPU backend byte for byte: no GPU needed.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/nvfp4_quantize/test/problem.h"
#include "ptx/emulation.h"

namespace isobit::nvfp4_quantize::test {
namespace {

constexpr const char* kPtxFolder = ISOBIT_BINARY_DIR "/ptx/nvfp4_quantize/cuda";

void expect_cpu_bytes(const Shape& shape, Values values) {
  Problem cpu(shape, values, 7);
  const isobit_nvfp4_quantize_args cpu_args = cpu.args();
  ASSERT_EQ(isobit_nvfp4_quantize(&cpu_args, nullptr), ISOBIT_OK) << isobit_last_error();
  ptx::for_each_schedule(kPtxFolder, {}, [&](ptx::EmulatedRuntime& emulated, const ptx::ScheduleCase& schedule) {
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

TEST(Nvfp4QuantizeEmulated, RowsInSeveralPieces) { expect_cpu_bytes({.rows = 1, .k = 4160}, Values::kNormal); }

TEST(Nvfp4QuantizeEmulated, UnusableDeviceScale) {
  expect_cpu_bytes({.rows = 2, .k = 32, .device_global = true, .global = -1}, Values::kNormal);
}

}  // namespace
}  // namespace isobit::nvfp4_quantize::test
