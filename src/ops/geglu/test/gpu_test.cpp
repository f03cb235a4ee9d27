// The CUDA schedules on a device: bytes of the CPU backend for every dtype, layout, width, stream and batch.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "core/test/device_arena.h"
#include "ops/geglu/cuda/launch.h"
#include "ops/geglu/test/problem.h"

namespace isobit::geglu::test {
namespace {

constexpr isobit_dtype kDtypes[] = {ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32};
constexpr isobit_gelu kGelus[] = {ISOBIT_GELU_TANH, ISOBIT_GELU_ERF};
constexpr Device kDevice = {ISOBIT_CUDA, 0};

using isobit::test::DeviceArena;

struct Options {
  isobit_gelu gelu = ISOBIT_GELU_TANH;
  bool round_gelu = false;
  const char* kernel = nullptr;
  cudaStream_t stream = nullptr;
};

// Arenas after forward and after backward.
struct Arenas {
  std::vector<std::byte> forward, backward;
  bool operator==(const Arenas&) const = default;
};

template <class Args>
void apply(const Options& options, Args* args) {
  args->kernel = options.kernel;
  args->round_gelu = options.round_gelu ? 1 : 0;
}

Arenas run_cpu(Problem problem, const Options& options) {
  Arenas arenas;
  problem.reset();
  isobit_geglu_forward_args forward = problem.forward(options.gelu);
  apply(options, &forward);
  forward.kernel = nullptr;
  EXPECT_EQ(isobit_geglu_forward(&forward, nullptr), ISOBIT_OK) << isobit_last_error();
  arenas.forward = problem.arena;
  problem.reset();
  isobit_geglu_backward_args backward = problem.backward(options.gelu);
  apply(options, &backward);
  backward.kernel = nullptr;
  EXPECT_EQ(isobit_geglu_backward(&backward, nullptr), ISOBIT_OK) << isobit_last_error();
  arenas.backward = problem.arena;
  return arenas;
}

Arenas run_gpu(Problem problem, const Options& options) {
  Arenas arenas;
  problem.reset();
  DeviceArena device(problem.arena);
  isobit_geglu_forward_args forward = problem.forward(device.data(), kDevice, options.gelu);
  apply(options, &forward);
  EXPECT_EQ(isobit_geglu_forward(&forward, options.stream), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  device.download(&problem.arena);
  arenas.forward = problem.arena;
  problem.reset();
  device.upload(problem.arena);
  isobit_geglu_backward_args backward = problem.backward(device.data(), kDevice, options.gelu);
  apply(options, &backward);
  EXPECT_EQ(isobit_geglu_backward(&backward, options.stream), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  device.download(&problem.arena);
  arenas.backward = problem.arena;
  return arenas;
}

std::string describe(isobit_dtype dtype, const Shape& s, const Options& o) {
  return std::string(dtype_name(dtype)) + " gelu " + std::to_string(o.gelu) + " " + std::to_string(s.rows) + "x" +
         std::to_string(s.columns) + " inputs " + std::to_string(static_cast<int>(s.inputs)) + " gradients " +
         std::to_string(static_cast<int>(s.gradients)) + " padding " + std::to_string(s.padding) + " misalignment " +
         std::to_string(s.misalignment) + (s.swapped ? " swapped" : "") + (s.in_place ? " in place" : "") +
         (o.round_gelu ? " rounded" : "") + " kernel " + (o.kernel == nullptr ? "chosen" : o.kernel);
}

void expect_same_everywhere(isobit_dtype dtype, const Shape& shape, Options options, Values values) {
  const Problem problem(dtype, shape, values);
  const Arenas wanted = run_cpu(problem, options);
  for (const char* kernel : {"row", "tile"}) {
    options.kernel = kernel;
    EXPECT_TRUE(run_gpu(problem, options) == wanted) << describe(dtype, shape, options);
  }
}

// Every layout, with alignments that take the vector, the quad and the element paths.
void walk_layouts(isobit_dtype dtype, isobit_gelu gelu, int64_t rows, int64_t columns) {
  constexpr Arrangement kAll[] = {Arrangement::kSeparate, Arrangement::kStacked, Arrangement::kInterleaved};
  int variant = 0;
  for (const Arrangement inputs : kAll) {
    for (const Arrangement gradients : kAll) {
      for (const int64_t misalignment : {0, 1, 4}) {
        Shape shape = {.rows = rows, .columns = columns, .inputs = inputs, .gradients = gradients};
        shape.swapped = variant % 2 == 1;
        shape.padding = variant % 4 == 3 ? 5 : 0;
        shape.misalignment = misalignment;
        shape.in_place = variant % 5 == 4 && inputs == gradients;
        expect_same_everywhere(dtype, shape, {.gelu = gelu, .round_gelu = variant % 3 == 2}, Values::kPatterns);
        ++variant;
      }
    }
  }
  for (const CoupleCase& c : couple_cases(rows, columns)) {
    expect_same_everywhere(dtype, c.shape, {.gelu = gelu, .round_gelu = c.round_gelu}, Values::kPatterns);
  }
}

TEST(GegluGpu, SmallShapesInEveryLayout) {
  for (const isobit_dtype dtype : kDtypes) {
    for (const isobit_gelu gelu : kGelus) {
      for (const int64_t columns : {1, 7, 256, 520}) walk_layouts(dtype, gelu, 3, columns);
    }
  }
}

// Few launches that take every path, for the slow runs under compute-sanitizer.
TEST(GegluGpu, EveryPathOnce) {
  for (const isobit_dtype dtype : kDtypes) walk_layouts(dtype, ISOBIT_GELU_TANH, 2, 521);
  walk_layouts(ISOBIT_BF16, ISOBIT_GELU_ERF, 1, 7);
}

TEST(GegluGpu, ModelWidthsInEveryLayout) {
  for (const isobit_dtype dtype : kDtypes) {
    for (const int64_t columns : {1023, 1025, 4096, 4097, 14336, 14337}) {
      walk_layouts(dtype, ISOBIT_GELU_TANH, 5, columns);
    }
  }
}

TEST(GegluGpu, EveryHalfPrecisionPattern) {
  for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP16}) {
    for (const isobit_gelu gelu : kGelus) {
      expect_same_everywhere(dtype, {.rows = 1, .columns = 65536}, {.gelu = gelu}, Values::kEveryHalf);
      expect_same_everywhere(dtype, {.rows = 64, .columns = 65536}, {.gelu = gelu}, Values::kPatterns);
    }
  }
}

TEST(GegluGpu, WideRowsAndManyRows) {
  for (const isobit_dtype dtype : kDtypes) {
    expect_same_everywhere(dtype, {.rows = 2, .columns = (1 << 20) + 3, .padding = 1}, {}, Values::kNormal);
    expect_same_everywhere(dtype, {.rows = 65536, .columns = 8, .padding = 2}, {}, Values::kNormal);
    // One row, longer than the reach of the prefetch.
    expect_same_everywhere(dtype, {.rows = 3, .columns = 1 << 20}, {}, Values::kNormal);
    expect_same_everywhere(dtype, {.rows = 262141, .columns = 3, .padding = 1}, {}, Values::kNormal);
  }
}

TEST(GegluGpu, EveryTileGivesTheSameBytes) {
  Problem problem(ISOBIT_BF16, {.rows = 7, .columns = 14337, .padding = 63}, Values::kNormal);
  const Arenas wanted = run_cpu(problem, {});
  for (const int32_t columns : {256, 512, 1024, 2048, 4096}) {
    for (const int32_t warps : {4, 8}) {
      problem.reset();
      DeviceArena device(problem.arena);
      const isobit_geglu_backward_args args = problem.backward(device.data(), kDevice, ISOBIT_GELU_TANH);
      Params params;
      ASSERT_TRUE(check(&args, &params).ok());
      ASSERT_TRUE(cuda::launch_tile(params, {columns, warps}, nullptr).ok()) << isobit_last_error();
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      device.download(&problem.arena);
      EXPECT_TRUE(problem.arena == wanted.backward) << columns << " columns, " << warps << " warps";
    }
  }
}

TEST(GegluGpu, BatchAndPositionDoNotMatter) {
  Problem batch(ISOBIT_BF16, {.rows = 512, .columns = 4097}, Values::kNormal);
  DeviceArena device(batch.arena);
  isobit_geglu_forward_args args = batch.forward(device.data(), kDevice, ISOBIT_GELU_ERF);
  ASSERT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_OK);
  device.download(&batch.arena);
  const std::vector<uint32_t> all = batch.out();
  for (const int64_t row : {0, 1, 127, 511}) {
    isobit_geglu_forward_args one = args;
    for (isobit_tensor* t : {&one.gate, &one.up, &one.out}) t->shape[0] = 1;
    for (isobit_tensor* t : {&one.gate, &one.up}) t->data = static_cast<uint16_t*>(t->data) + row * t->stride[0];
    ASSERT_EQ(isobit_geglu_forward(&one, nullptr), ISOBIT_OK);
    device.download(&batch.arena);
    const std::vector<uint32_t> alone = batch.out();
    const auto at = static_cast<std::ptrdiff_t>(row * 4097);
    EXPECT_TRUE(std::equal(alone.begin(), alone.begin() + 4097, all.begin() + at)) << row;
    // Row 0 was overwritten by the row under test.
    ASSERT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_OK);
  }
}

TEST(GegluGpu, StreamsAndGraphs) {
  Problem problem(ISOBIT_BF16, {.rows = 33, .columns = 11008}, Values::kNormal, 5);
  const Arenas wanted = run_cpu(problem, {});
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_TRUE(run_gpu(problem, {.stream = stream}) == wanted);

  // Captured on the first call of its kind (erf, fp32, row), replayed with other inputs.
  Problem other(ISOBIT_FP32, {.rows = 17, .columns = 2051}, Values::kNormal, 6);
  DeviceArena device(other.arena);
  const Options options = {.gelu = ISOBIT_GELU_ERF, .kernel = "row", .stream = stream};
  isobit_geglu_forward_args args = other.forward(device.data(), kDevice, options.gelu);
  apply(options, &args);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(isobit_geglu_forward(&args, stream), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (const uint64_t seed : {7u, 8u}) {
    Problem replayed(ISOBIT_FP32, {.rows = 17, .columns = 2051}, Values::kNormal, seed);
    device.upload(replayed.arena);
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const Arenas expected = run_cpu(replayed, {.gelu = options.gelu});
    device.download(&replayed.arena);
    EXPECT_TRUE(replayed.arena == expected.forward) << seed;
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

// Tensors on the last device while the first is current: the caller's device stays, the bytes are the CPU's.
TEST(GegluGpu, TheCallersDeviceStays) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  const Device last = {ISOBIT_CUDA, count - 1};
  Problem problem(ISOBIT_BF16, {.rows = 4, .columns = 4097}, Values::kNormal);
  const Arenas wanted = run_cpu(problem, {});
  problem.reset();
  ASSERT_EQ(cudaSetDevice(last.id), cudaSuccess);
  DeviceArena device(problem.arena);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const isobit_geglu_forward_args args = problem.forward(device.data(), last, ISOBIT_GELU_TANH);
  ASSERT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  int current = -1;
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
  ASSERT_EQ(cudaSetDevice(last.id), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  device.download(&problem.arena);
  EXPECT_TRUE(problem.arena == wanted.forward);
}

}  // namespace
}  // namespace isobit::geglu::test
