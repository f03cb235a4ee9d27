// Top lists on a GPU, and the frozen bytes of the contract.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/linear_logp/test/frozen.h"
#include "ops/linear_logp/test/gpu_problem.h"

namespace isobit::linear_logp::test {
namespace {

const char* const kKernels[] = {"sm90", "sm80"};

void compare(const Problem& problem, const GpuOptions& base, const std::string& what) {
  const Outputs expected = run(problem, Outputs::kAll, Workspace::kRecommended, 16);
  for (const char* kernel : kKernels) {
    GpuOptions options = base;
    options.kernel = kernel;
    const Outputs found = run_gpu(problem, Outputs::kAll, options);
    for (int64_t row = 0; row < expected.rows; ++row) {
      ASSERT_EQ(expected.row_bytes(row), found.row_bytes(row)) << what << " on " << kernel << ", row " << row;
    }
  }
}

class LinearLogpGpuFrozen : public testing::TestWithParam<FrozenCase> {};

TEST_P(LinearLogpGpuFrozen, BytesStay) {
  Problem problem = frozen_problem(GetParam());
  for (const char* kernel : kKernels) {
    problem.top = 0;
    EXPECT_EQ(hash_words(run_gpu(problem, kFrozenOutputs, {.kernel = kernel}).bytes()), GetParam().outputs) << kernel;
    problem.top = kFrozenTop;
    EXPECT_EQ(hash_words(run_gpu(problem, Outputs::kAll, {.kernel = kernel}).bytes()), GetParam().everything) << kernel;
  }
}

std::string name_of(const testing::TestParamInfo<FrozenCase>& c) { return c.param.name; }
INSTANTIATE_TEST_SUITE_P(Cases, LinearLogpGpuFrozen, testing::ValuesIn(frozen_cases().begin(), frozen_cases().end()),
                         name_of);

TEST(LinearLogpGpuTop, LengthsAndVocabularies) {
  for (const int64_t rows : {1, 9, 64, 70, 200}) {
    for (const auto& [vocab, top] : {std::pair<int64_t, int64_t>{1, 1}, {64, 64}, {1023, 5}, {1024, 1}, {5003, 64}}) {
      Problem problem = random_problem({rows, 40, vocab}, 61);
      problem.top = top;
      compare(problem, {}, std::to_string(rows) + " rows, " + std::to_string(vocab) + " ids");
    }
  }
}

TEST(LinearLogpGpuTop, EqualLogitsSpecialRowsAndOptions) {
  for (const int64_t rows : {12, 140}) {
    Problem problem = random_problem({rows, 64, 3001, 2}, 62);
    for (int64_t v = 1500; v < 3000; ++v) {
      for (int64_t k = 0; k < 64; ++k) problem.set_weight(v, k, problem.weight_at(v - 1500, k));
    }
    problem.top = 33;
    problem.target[0] = problem.target[1] = -100;
    problem.target[3] = 3001;
    problem.set_hidden(2, 3, NAN);
    problem.set_hidden(3, 3, INFINITY);
    for (int64_t k = 0; k < 64; ++k) problem.set_hidden(4, k, 0.0f);
    compare(problem, {}, "ties");
    problem.softcap = 5.0f;
    problem.temperature_value = 0.8f;
    for (int64_t v = 0; v < 3001; ++v)
      problem.bias.push_back(v % 5 == 0 ? -INFINITY : 0.25f * static_cast<float>(v % 3));
    compare(problem, {}, "options");
    problem.softcap = 0.0f;
    compare(problem, {.minimum_workspace = true}, "masked ids, smallest workspace");
  }
}

TEST(LinearLogpGpuTop, ChunksAndGraphs) {
  Problem problem = random_problem({300, 64, 30011}, 63);
  problem.top = 4;
  compare(problem, {.minimum_workspace = true}, "smallest workspace");
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  compare(problem, {.stream = stream, .graph = true}, "graph");
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace isobit::linear_logp::test
