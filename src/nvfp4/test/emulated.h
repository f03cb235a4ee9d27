// Kernels of the NVFP4 products in the PTX interpreter, against the CPU backend byte for byte: no GPU needed.
#pragma once

#include <cstring>
#include <string>

#include "nvfp4/test/calls.h"
#include "ptx/runtime/emulation.h"

namespace isobit::test {

// Runs the row called `kernel` from the texts in `ptx_folder`, under every schedule and with the race checker on.
// Compared is every byte of the arena: outputs, their padding, and what must not be written.
template <class Problem>
void expect_cpu_bytes_emulated(const std::string& ptx_folder, const char* kernel,
                               const typename Problem::ShapeType& shape, const ptx::EmulationOptions& options = {}) {
  Problem cpu(shape);
  ASSERT_EQ(cpu.run_cpu(), ISOBIT_OK) << isobit_last_error();
  ptx::for_each_schedule(ptx_folder, options, [&](ptx::EmulatedRuntime& emulated, const ptx::ScheduleCase& schedule) {
    Problem gpu(shape);
    const ptx::DeviceBuffer memory = emulated.upload(gpu.arena.bytes.data(), gpu.arena.bytes.size());
    typename Problem::Args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
    args.kernel = kernel;
    size_t minimum = 0;
    ASSERT_EQ(Problem::kCalls.workspace(&args, &minimum, &args.workspace_bytes), ISOBIT_OK) << isobit_last_error();
    // Less makes some kernels work in pieces.
    if (schedule.schedule == ptx::Schedule::kLazy) args.workspace_bytes = minimum;
    const ptx::DeviceBuffer workspace = emulated.allocate(args.workspace_bytes);
    args.workspace = workspace.data();
    const isobit_status status = Problem::kCalls.run(&args, nullptr);
    ASSERT_EQ(status, ISOBIT_OK) << schedule.name << ": " << isobit_last_error() << emulated.report().text();
    std::memcpy(gpu.arena.bytes.data(), memory.data(), gpu.arena.bytes.size());
    EXPECT_TRUE(emulated.report().ok()) << schedule.name << ": " << emulated.report().text();
    EXPECT_TRUE(gpu.arena.bytes == cpu.arena.bytes) << schedule.name << ": " << gpu.arena.stray_write();
  });
}

}  // namespace isobit::test
