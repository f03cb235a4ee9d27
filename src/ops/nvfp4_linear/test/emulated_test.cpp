// The mma.sync kernel in the PTX interpreter, against the CPU backend byte for byte: no GPU needed.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/nvfp4_linear/test/problem.h"
#include "ptx/emulation.h"

namespace isobit::nvfp4_linear::test {
namespace {

constexpr const char* kPtxFolder = ISOBIT_BINARY_DIR "/ptx/nvfp4_linear/sm80";

void expect_cpu_bytes(const Shape& shape) {
  Problem cpu(shape);
  ASSERT_EQ(cpu.run_cpu(), ISOBIT_OK) << isobit_last_error();
  ptx::for_each_schedule(kPtxFolder, {}, [&](ptx::EmulatedRuntime& emulated, const ptx::ScheduleCase& schedule) {
    Problem gpu(shape);
    const ptx::DeviceBuffer memory = emulated.upload(gpu.arena.bytes.data(), gpu.arena.bytes.size());
    const isobit_nvfp4_linear_args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
    ASSERT_EQ(isobit_nvfp4_linear(&args, nullptr), ISOBIT_OK) << isobit_last_error();
    std::memcpy(gpu.arena.bytes.data(), memory.data(), gpu.arena.bytes.size());
    EXPECT_TRUE(emulated.report().ok()) << schedule.name << ": " << emulated.report().text();
    EXPECT_EQ(gpu.out(), cpu.out()) << schedule.name;
    EXPECT_EQ(gpu.arena.stray_write(), "") << schedule.name;
  });
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

}  // namespace
}  // namespace isobit::nvfp4_linear::test
