// The backward pass on a GPU: bytes of the CPU backend for every plan, repeated, and in a graph.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ops/linear_logp/test/backward_frozen.h"
#include "ops/linear_logp/test/backward_shards.h"
#include "ops/linear_logp/test/gpu_place.h"

namespace isobit::linear_logp::test {
namespace {

void expect_ok(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

void expect_equal(const BackwardBytes& expected, const BackwardBytes& found) {
  EXPECT_TRUE(expected.d_hidden == found.d_hidden);
  EXPECT_TRUE(expected.d_weight == found.d_weight);
  EXPECT_TRUE(expected.d_bias == found.d_bias);
  EXPECT_TRUE(expected.logp == found.logp);
  EXPECT_TRUE(expected.lse == found.lse);
  EXPECT_TRUE(expected.entropy == found.entropy);
}

// By kernel.
class LinearLogpBackwardGpu : public testing::TestWithParam<std::string> {
 protected:
  BackwardOptions on_gpu(BackwardOptions options) const {
    options.kernel = name_.c_str();
    return options;
  }
  void compare(const BackwardCase& c, const BackwardOptions& options = {}) const {
    Gpu gpu;
    expect_equal(run_backward_on_cpu(c, options), run_backward(c, &gpu, on_gpu(options)));
  }

 private:
  const std::string name_ = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Kernels, LinearLogpBackwardGpu, testing::Values(std::string("sm90"), std::string("sm80")),
                         [](const auto& instance) { return instance.param; });

BackwardCase with_everything(const Shape& shape, uint64_t seed) {
  BackwardCase c = random_case(shape, seed, 6.0f);
  c.d_entropy = c.d_lse;
  for (int64_t v = 0; v < shape.vocab; ++v) c.problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
  for (int64_t n = 0; n < shape.rows; ++n) {
    c.problem.temperature.push_back(n == 5 ? 0.0f : 0.5f + 0.1f * static_cast<float>(n % 11));
  }
  c.problem.softcap = 8.0f;
  c.bias_dtype = ISOBIT_FP32;
  c.forward_outputs = true;
  c.padding = 3;
  return c;
}

TEST_P(LinearLogpBackwardGpu, BytesOfTheCpu) {
  compare(random_case({150, 72, 1500}, 1));
  compare(random_case({300, 512, 4096}, 2));
  compare(random_case({33, 264, 3001}, 3));
  BackwardCase c = random_case({200, 320, 5000}, 4);
  c.weight_dtype = ISOBIT_BF16;
  compare(c);
}

TEST_P(LinearLogpBackwardGpu, FrozenBytes) {
  for (const FrozenBackwardCase& frozen : frozen_backward_cases()) {
    const BackwardCase c = frozen_backward_case(frozen);
    Gpu gpu;
    EXPECT_EQ(hash_gradients(run_backward(c, &gpu, on_gpu({}))), frozen.whole) << frozen.name;
    EXPECT_EQ(hash_gradients(run_backward(c, &gpu, on_gpu({.minimum = true, .saves = true, .subtract_p = 1}))),
              frozen.subtract_p)
        << frozen.name;
  }
}

TEST_P(LinearLogpBackwardGpu, Options) {
  BackwardCase c = with_everything({137, 192, 1403, 3}, 5);
  compare(c);
  c.accumulate = true;
  c.hidden_dtype = ISOBIT_FP32;
  compare(c, {.minimum = true, .saves = true});
}

// What the copy engine of SM90 cannot take, and who takes it.
TEST(LinearLogpBackwardGpuDispatch, OddWidthsAndAddresses) {
  const auto compare_choice = [](const BackwardCase& c) {
    Gpu gpu;
    expect_equal(run_backward_on_cpu(c), run_backward(c, &gpu));
  };
  compare_choice(random_case({150, 33, 1500}, 13));
  compare_choice(random_case({40, 1153, 700}, 14));
  compare_choice(with_everything({137, 45, 1403, 3}, 15));
  BackwardCase misaligned = random_case({150, 72, 1500}, 16);
  misaligned.misaligned = true;
  compare_choice(misaligned);
}

TEST_P(LinearLogpBackwardGpu, Pieces) {
  compare(random_case({5, 64, 131072 + 1000}, 6));
  BackwardCase c = random_case({10500, 16, 100}, 7);
  compare(c);
  c.weight_dtype = ISOBIT_BF16;
  compare(c);
}

// Ignored and invalid rows full of NaN, a row that NaN spoils, no valid row, no row.
TEST_P(LinearLogpBackwardGpu, SpecialRows) {
  BackwardCase c = random_case({150, 64, 1330}, 10);
  for (const int64_t row : {int64_t{3}, int64_t{11}, int64_t{5}}) c.problem.set_hidden(row, 3, NAN);
  compare(c);
  for (int64_t& target : c.problem.target) target = -100;
  compare(c);
  compare(random_case({0, 64, 300}, 11));
}

// One value for all rows, as a mean's gradient comes from autograd.
TEST_P(LinearLogpBackwardGpu, ExpandedUpstream) {
  const BackwardCase c = random_case({150, 64, 1330, 2}, 12);
  Gpu gpu;
  const std::unique_ptr<Place> host = host_place();
  const auto run = [&](Place* place, const BackwardOptions& options) {
    BackwardCall call(c, place, options);
    call.args.d_logp.stride[0] = call.args.d_logp.stride[1] = call.args.d_lse.stride[0] = 0;
    EXPECT_EQ(isobit_linear_logp_backward(&call.args, nullptr), ISOBIT_OK) << isobit_last_error();
    return call.fetch();
  };
  expect_equal(run(host.get(), {}), run(&gpu, on_gpu({})));
}

// States, records, parts and gradients of shards are the CPU's and, merged, those of one call.
TEST_P(LinearLogpBackwardGpu, Shards) {
  BackwardCase c = random_case({300, 264, 8000}, 9);
  c.forward_outputs = true;
  for (int64_t v = 0; v < 8000; ++v) c.problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
  c.bias_dtype = ISOBIT_FP32;
  const BackwardBytes whole = run_backward_on_cpu(c, {.subtract_p = 1});
  for (const std::vector<int64_t>& cuts :
       {std::vector<int64_t>{0, 8000}, {0, 4000, 8000}, {0, 2000, 4000, 6000, 8000}, {0, 500, 3500, 8000}}) {
    Gpu gpu;
    const ShardedBytes found = run_backward_shards(c, cuts, &gpu, on_gpu({}).kernel);
    const ShardedBytes expected = run_backward_shards_on_cpu(c, cuts);
    EXPECT_TRUE(expected.saved == found.saved);
    EXPECT_TRUE(expected.parts == found.parts);
    expect_equal(expected.merged, found.merged);
    expect_equal(whole, found.merged);
  }
}

// Every plan gives the same bytes, and so does every repetition and the replay of a graph.
TEST_P(LinearLogpBackwardGpu, PlansRepetitionsAndGraphs) {
  const BackwardCase c = with_everything({600, 256, 6000, 2}, 8);
  const BackwardBytes expected = run_backward_on_cpu(c);
  cudaStream_t stream = nullptr;
  expect_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (const bool minimum : {true, false}) {
    Gpu gpu;
    BackwardCall call(c, &gpu, on_gpu({.minimum = minimum}));
    ASSERT_EQ(isobit_linear_logp_backward(&call.args, stream), ISOBIT_OK) << isobit_last_error();
    expect_ok(cudaStreamSynchronize(stream));
    expect_equal(expected, call.fetch());

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    expect_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ASSERT_EQ(isobit_linear_logp_backward(&call.args, stream), ISOBIT_OK) << isobit_last_error();
    expect_ok(cudaStreamEndCapture(stream, &graph));
    expect_ok(cudaGraphInstantiate(&executable, graph, 0));
    size_t hash = 0;
    for (int i = 0; i < 500; ++i) {
      expect_ok(cudaMemsetAsync(call.args.forward.workspace, i % 256, call.args.forward.workspace_bytes, stream));
      expect_ok(cudaGraphLaunch(executable, stream));
      expect_ok(cudaStreamSynchronize(stream));
      const BackwardBytes bytes = call.fetch();
      const size_t found = std::hash<std::string>()(bytes.d_hidden + bytes.d_weight + bytes.d_bias);
      if (i == 0) hash = found;
      ASSERT_EQ(hash, found) << "repetition " << i;
    }
    expect_equal(expected, call.fetch());
    expect_ok(cudaGraphExecDestroy(executable));
    expect_ok(cudaGraphDestroy(graph));
  }
  expect_ok(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace isobit::linear_logp::test
