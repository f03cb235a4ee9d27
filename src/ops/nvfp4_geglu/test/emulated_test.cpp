// The mma.sync kernel in the PTX interpreter, against the CPU backend byte for byte: no GPU needed.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/nvfp4_geglu/test/problem.h"
#include "ptx/emulation.h"

namespace isobit::nvfp4_geglu::test {
namespace {

constexpr const char* kPtxFolder = ISOBIT_BINARY_DIR "/ptx/nvfp4_geglu/sm80";

void expect_cpu_bytes(const Shape& shape) {
  Problem cpu(shape);
  ASSERT_EQ(cpu.run_cpu(), ISOBIT_OK) << isobit_last_error();
  ptx::for_each_schedule(kPtxFolder, {}, [&](ptx::EmulatedRuntime& emulated, const ptx::ScheduleCase& schedule) {
    Problem gpu(shape);
    const ptx::DeviceBuffer memory = emulated.upload(gpu.arena.bytes.data(), gpu.arena.bytes.size());
    const isobit_nvfp4_geglu_args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
    ASSERT_EQ(isobit_nvfp4_geglu(&args, nullptr), ISOBIT_OK) << isobit_last_error();
    std::memcpy(gpu.arena.bytes.data(), memory.data(), gpu.arena.bytes.size());
    EXPECT_TRUE(emulated.report().ok()) << schedule.name << ": " << emulated.report().text();
    // Every byte: codes, scales with their padding, and what must not be written.
    EXPECT_TRUE(gpu.arena.bytes == cpu.arena.bytes)
        << schedule.name << gpu.arena.stray_write() << gpu.out.dirty_padding();
  });
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

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
