// The mma.sync kernel on a GPU, against the CPU backend byte for byte (compute capability 9.0).
#include <gtest/gtest.h>

#include "core/test/device_arena.h"
#include "ops/nvfp4_geglu/test/problem.h"

namespace isobit::nvfp4_geglu::test {
namespace {

using isobit::test::DeviceArena;

void expect_cpu_bytes(const Shape& shape, uint64_t seed = 1) {
  Problem cpu(shape, seed), gpu(shape, seed);
  ASSERT_EQ(cpu.run_cpu(), ISOBIT_OK) << isobit_last_error();
  const DeviceArena memory(gpu.arena.bytes);
  const isobit_nvfp4_geglu_args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
  ASSERT_EQ(isobit_nvfp4_geglu(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  memory.download(&gpu.arena.bytes);
  EXPECT_TRUE(gpu.arena.bytes == cpu.arena.bytes)
      << shape.rows << " x " << shape.width << " x " << shape.k << gpu.arena.stray_write() << gpu.out.dirty_padding();
}

TEST(Nvfp4GegluGpu, EveryRaggedness) {
  for (const isobit_gelu gelu : {ISOBIT_GELU_TANH, ISOBIT_GELU_ERF}) {
    for (const int64_t rows : {1, 5, 32, 127, 128, 129}) {
      for (const int64_t width : {16, 160, 176, 704}) {
        for (const int64_t k : {16, 80, 1040}) {
          expect_cpu_bytes({.rows = rows, .width = width, .k = k, .gelu = gelu, .gate_scale = 1.3f, .out_scale = 9});
          expect_cpu_bytes(
              {.rows = rows, .width = width, .k = k, .gelu = gelu, .x_scale = 1e-4f, .values = ScaleValues::kAny});
        }
      }
    }
  }
}

TEST(Nvfp4GegluGpu, LayoutsStridesAndAlignment) {
  constexpr isobit_nvfp4_layout kLayouts[] = {ISOBIT_NVFP4_LINEAR, ISOBIT_NVFP4_128X4, ISOBIT_NVFP4_8X4};
  for (const isobit_nvfp4_layout x : kLayouts) {
    for (const isobit_nvfp4_layout weight : kLayouts) {
      for (const isobit_nvfp4_layout out : kLayouts) {
        for (const size_t offset : {0, 1, 4, 8}) {
          expect_cpu_bytes({.rows = 150,
                            .width = 112,
                            .k = 176,
                            .x_layout = x,
                            .weight_layout = weight,
                            .out_layout = out,
                            .padding = static_cast<int64_t>(offset),
                            .offset = offset,
                            .device_scales = true,
                            .up_scale = 0.4f});
        }
      }
    }
  }
}

// The rows of pi0.5's prompts against a slice of its width.
TEST(Nvfp4GegluGpu, VisionLanguageRows) {
  for (const int64_t rows : {784, 816, 880, 968})
    expect_cpu_bytes({.rows = rows, .width = 256, .k = 2048, .x_scale = 0.01f});
}

TEST(Nvfp4GegluGpu, CapturedOnTheFirstCall) {
  Problem cpu({.rows = 9, .width = 96, .k = 96, .device_scales = true}, 5);
  ASSERT_EQ(cpu.run_cpu(), ISOBIT_OK);
  Problem gpu(cpu.shape(), 5);
  const DeviceArena memory(gpu.arena.bytes);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  const isobit_nvfp4_geglu_args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
  ASSERT_EQ(isobit_nvfp4_geglu(&args, stream), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (int replay = 0; replay < 2; ++replay) {
    memory.upload(gpu.arena.bytes);
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    memory.download(&gpu.arena.bytes);
    EXPECT_TRUE(gpu.arena.bytes == cpu.arena.bytes);
    gpu.arena.poison_outputs();
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
