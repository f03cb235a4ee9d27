// The mma.sync kernel on a GPU, against the CPU backend byte for byte (compute capability 9.0).
#include <gtest/gtest.h>

#include "core/test/device_arena.h"
#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

using isobit::test::DeviceArena;

void expect_cpu_bytes(const Shape& shape, uint64_t seed = 1) {
  Problem cpu(shape, seed), gpu(shape, seed);
  ASSERT_EQ(cpu.run_cpu(), ISOBIT_OK) << isobit_last_error();
  const DeviceArena memory(gpu.arena.bytes);
  const isobit_nvfp4_linear_args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
  ASSERT_EQ(isobit_nvfp4_linear(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  memory.download(&gpu.arena.bytes);
  EXPECT_TRUE(gpu.out() == cpu.out()) << shape.rows << " x " << shape.columns << " x " << shape.k;
  EXPECT_EQ(gpu.arena.stray_write(), "");
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

// The down projection of pi0.5's layers, its sums 16,384 long.
TEST(Nvfp4LinearGpu, DownProjection) {
  expect_cpu_bytes({.rows = 40, .columns = 2048, .k = 16384, .dtype = ISOBIT_BF16, .x_scale = 1e-3f});
}

TEST(Nvfp4LinearGpu, CapturedOnTheFirstCall) {
  Problem cpu({.rows = 9, .columns = 200, .k = 96, .device_scales = true}, 5);
  ASSERT_EQ(cpu.run_cpu(), ISOBIT_OK);
  Problem gpu(cpu.shape(), 5);
  const DeviceArena memory(gpu.arena.bytes);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  const isobit_nvfp4_linear_args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
  ASSERT_EQ(isobit_nvfp4_linear(&args, stream), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (int replay = 0; replay < 2; ++replay) {
    memory.upload(gpu.arena.bytes);
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    memory.download(&gpu.arena.bytes);
    EXPECT_TRUE(gpu.out() == cpu.out());
    gpu.arena.poison_outputs();
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace isobit::nvfp4_linear::test
