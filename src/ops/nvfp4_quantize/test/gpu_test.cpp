// The CUDA kernel on a GPU, against the CPU backend byte for byte.
#include <gtest/gtest.h>

#include "core/test/device_arena.h"
#include "ops/nvfp4_quantize/test/problem.h"

namespace isobit::nvfp4_quantize::test {
namespace {

using isobit::test::DeviceArena;

void expect_cpu_bytes(const Shape& shape, Values values, uint64_t seed = 7) {
  Problem cpu(shape, values, seed);
  Problem gpu = cpu;
  const isobit_nvfp4_quantize_args cpu_args = cpu.args();
  ASSERT_EQ(isobit_nvfp4_quantize(&cpu_args, nullptr), ISOBIT_OK) << isobit_last_error();
  const DeviceArena memory(gpu.arena);
  const isobit_nvfp4_quantize_args args = gpu.args(memory.data(), {ISOBIT_CUDA, 0});
  ASSERT_EQ(isobit_nvfp4_quantize(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  memory.download(&gpu.arena);
  EXPECT_TRUE(gpu.arena == cpu.arena) << shape.rows << " x " << shape.k << ": " << gpu.difference_from_reference()
                                      << gpu.stray_write();
}

constexpr isobit_dtype kDtypes[] = {ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32};
constexpr isobit_nvfp4_layout kLayouts[] = {ISOBIT_NVFP4_LINEAR, ISOBIT_NVFP4_128X4, ISOBIT_NVFP4_8X4};

TEST(Nvfp4QuantizeGpu, EveryDtypeLayoutAndShape) {
  for (const isobit_dtype dtype : kDtypes) {
    for (const isobit_nvfp4_layout layout : kLayouts) {
      for (const Values values : {Values::kNormal, Values::kPatterns}) {
        for (const int64_t rows : {1, 5, 32, 127, 128, 129, 784, 968}) {
          for (const int64_t k : {16, 48, 2048, 4304}) {
            expect_cpu_bytes({.rows = rows, .k = k, .dtype = dtype, .layout = layout, .global = 12.5f}, values);
          }
        }
      }
    }
  }
}

TEST(Nvfp4QuantizeGpu, EveryBf16BesideEveryOther) {
  expect_cpu_bytes({.rows = 2048, .k = 8192, .layout = ISOBIT_NVFP4_LINEAR}, Values::kPatterns, 23);
}

TEST(Nvfp4QuantizeGpu, StridesAndAlignment) {
  for (const isobit_dtype dtype : kDtypes) {
    for (const int64_t off : {0, 1, 2, 3, 8}) {
      expect_cpu_bytes({.rows = 33,
                        .k = 1040,
                        .dtype = dtype,
                        .padding = off,
                        .codes_padding = off,
                        .misalignment = off,
                        .codes_offset = off},
                       Values::kNormal);
    }
  }
}

TEST(Nvfp4QuantizeGpu, MoreRowsThanGridY) {
  expect_cpu_bytes({.rows = 65537, .k = 16}, Values::kNormal);
  expect_cpu_bytes({.rows = 262141, .k = 16, .layout = ISOBIT_NVFP4_8X4}, Values::kNormal);
}

TEST(Nvfp4QuantizeGpu, CapturedOnTheFirstCallAndReplayedWithNewValues) {
  const Shape shape = {.rows = 129, .k = 176, .device_global = true, .global = 2};
  Problem first(shape, Values::kNormal, 1), second(shape, Values::kNormal, 2);
  second.reset();
  const DeviceArena memory(first.arena);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  const isobit_nvfp4_quantize_args args = first.args(memory.data(), {ISOBIT_CUDA, 0});
  ASSERT_EQ(isobit_nvfp4_quantize(&args, stream), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (Problem* problem : {&first, &second}) {
    memory.upload(problem->arena);
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    memory.download(&problem->arena);
    EXPECT_EQ(problem->difference_from_reference(), "");
    EXPECT_EQ(problem->stray_write(), "");
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace isobit::nvfp4_quantize::test
