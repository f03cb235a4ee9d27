// Bytes of the GPU kernels against the CPU backend. Small enough for compute-sanitizer, so a filter on `Small` serves
// it.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/linear_logp/test/gpu_problem.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kPlain = Outputs::kLogp | Outputs::kLse;
constexpr unsigned kWithEntropy = kPlain | Outputs::kEntropy | Outputs::kLogit;
constexpr unsigned kEverything = kWithEntropy | Outputs::kRank;
const char* const kKernels[] = {"sm90", "sm80"};

// Every byte, row by row, so that a failure names the row.
void expect_equal(const Outputs& expected, const Outputs& found, const std::string& what) {
  ASSERT_EQ(expected.rows, found.rows);
  int wrong = 0;
  for (int64_t row = 0; row < expected.rows; ++row) {
    if (expected.row_bytes(row) == found.row_bytes(row)) continue;
    if (wrong++ > 2) continue;
    ADD_FAILURE() << what << ": row " << row << ", logp " << expected.logp_at(row) << " / " << found.logp_at(row);
  }
  EXPECT_EQ(wrong, 0) << what;
}

void compare(const Problem& problem, unsigned wanted, const std::string& what, const GpuOptions& base = {}) {
  const Outputs expected = run(problem, wanted, Workspace::kRecommended, 16);
  for (const char* kernel : kKernels) {
    GpuOptions options = base;
    options.kernel = kernel;
    expect_equal(expected, run_gpu(problem, wanted, options), what + " on " + kernel);
  }
}

std::string name_of(const Shape& s) {
  return std::to_string(s.rows) + " x " + std::to_string(s.width) + " x " + std::to_string(s.vocab);
}

constexpr Shape kShapes[] = {{1, 64, 1},      {1, 8, 63},      {3, 64, 64},     {8, 72, 65},     {9, 128, 127},
                             {16, 16, 128},   {17, 192, 129},  {33, 136, 191},  {64, 64, 192},   {65, 64, 193},
                             {127, 256, 255}, {128, 64, 256},  {129, 64, 257},  {200, 320, 383}, {130, 64, 384},
                             {257, 72, 385},  {70, 640, 1151}, {300, 128, 2816}};

TEST(LinearLogpGpuSmall, Shapes) {
  for (const Shape& shape : kShapes) {
    compare(random_problem(shape, 11), kPlain, name_of(shape));
    compare(random_problem(shape, 12), kWithEntropy, name_of(shape) + " entropy");
  }
}

TEST(LinearLogpGpuSmall, Fp16) {
  for (const Shape& shape : {Shape{5, 64, 300}, Shape{70, 128, 700}}) {
    compare(random_problem(shape, 13, 4.0f, ISOBIT_FP16), kPlain, name_of(shape));
    compare(random_problem(shape, 14, 4.0f, ISOBIT_FP16), kEverything, name_of(shape) + " all");
  }
}

TEST(LinearLogpGpuSmall, OddWidthsAndMisalignedBases) {
  for (const int64_t width : {1, 7, 33, 65, 90}) {
    for (const int64_t rows : {4, 67}) {
      Problem problem = random_problem({rows, width, 331}, 15);
      const Outputs expected = run(problem, kWithEntropy);
      expect_equal(expected, run_gpu(problem, kWithEntropy, {.kernel = "sm80"}), "packed");
      expect_equal(expected, run_gpu(problem, kWithEntropy, {.kernel = "sm80", .misalignment = 2}), "misaligned");
      pad_rows(&problem, (width + 15) / 8 * 8);
      compare(problem, kWithEntropy, "padded rows");
    }
  }
}

// All options at once, then each row special in its own way.
Problem problem_with_options(const Shape& shape, uint64_t seed) {
  Problem problem = random_problem(shape, seed, 6.0f);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  for (int64_t v = 0; v < shape.vocab; ++v) problem.bias.push_back(normal(random));
  for (int64_t n = 0; n < shape.rows; ++n) problem.temperature.push_back(0.5f + 0.1f * static_cast<float>(n % 11));
  problem.softcap = 8.0f;
  return problem;
}

TEST(LinearLogpGpuSmall, Options) {
  for (const Shape& shape : {Shape{7, 64, 200, 3}, Shape{40, 72, 450, 1}, Shape{131, 64, 777, 2}}) {
    compare(problem_with_options(shape, 16), kEverything, name_of(shape));
    Problem one = random_problem(shape, 17);
    one.temperature_value = 0.7f;
    compare(one, kEverything, name_of(shape) + " temperature");
    for (int64_t n = 0; n < shape.rows; ++n)
      one.temperature.push_back(n % 50 == 7 ? 0x1p-40f : 0.3f * static_cast<float>(1 + n % 7));
    compare(one, kWithEntropy, name_of(shape) + " temperatures");
  }
}

TEST(LinearLogpGpuSmall, SpecialRows) {
  constexpr float kInfinity = INFINITY;
  for (const int64_t rows : {12, 140}) {
    for (const bool options : {false, true}) {
      const Shape shape{rows, 64, 500, options ? 2 : 1};
      Problem problem = options ? problem_with_options(shape, 18) : random_problem(shape, 18);
      const int64_t k = shape.targets;
      problem.target[0] = -100;
      problem.target[1 * k] = 500;
      problem.target[2 * k] = -1;
      for (int64_t i = 0; i < k; ++i) problem.target[3 * k + i] = -100;
      problem.set_hidden(3, 5, NAN);
      problem.set_hidden(4, 0, NAN);
      problem.set_hidden(5, 1, kInfinity);
      problem.set_hidden(6, 1, 3e38f);
      problem.set_weight(499, 1, 3e38f);
      problem.set_weight(130, 2, -kInfinity);
      if (options) {
        problem.bias[7] = -kInfinity;
        problem.bias[200] = -1e30f;
        problem.temperature[7] = 0.0f;
        problem.temperature[8] = NAN;
        problem.temperature[9] = -1.0f;
        problem.temperature[10] = 1e-30f;
      }
      compare(problem, options ? kEverything : kWithEntropy, "special rows");
    }
  }
}

TEST(LinearLogpGpuSmall, LargeLogits) {
  for (const float scale : {60.0f, 500.0f, 3e6f}) {
    for (const int64_t rows : {6, 100}) {
      compare(random_problem({rows, 64, 900}, 19, scale), kWithEntropy, "scale " + std::to_string(scale));
    }
  }
  // One dominant logit, and a row of equal ones.
  Problem problem = random_problem({70, 64, 600}, 20, 0.1f);
  for (int64_t i = 0; i < 64; ++i) problem.set_weight(311, i, problem.hidden_at(1, i) * 4.0f);
  for (int64_t i = 0; i < 64; ++i) problem.set_hidden(2, i, 0.0f);
  compare(problem, kEverything, "dominant");
}

TEST(LinearLogpGpuSmall, PaddedVocabularyAndEmptyCalls) {
  Problem problem = random_problem({66, 64, 640}, 21);
  for (int64_t v = 601; v < 640; ++v) problem.set_weight(v, 0, NAN);
  for (int64_t& target : problem.target) target %= 601;
  const GpuProblem device(problem);
  for (const char* kernel : kKernels) {
    GpuOutputs outputs(problem, kWithEntropy);
    isobit_linear_logp_args args = device.args();
    args.kernel = kernel;
    args.vocab_size = 601;
    outputs.attach(&args);
    size_t minimum = 0;
    ASSERT_EQ(isobit_linear_logp_workspace(&args, &minimum, nullptr), ISOBIT_OK);
    const DeviceMemory workspace(minimum);
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.bytes();
    ASSERT_EQ(isobit_linear_logp(&args, nullptr), ISOBIT_OK) << isobit_last_error();
    isobit_linear_logp_args host_args = problem.args();
    Outputs expected(problem, kWithEntropy);
    expected.attach(&host_args);
    host_args.vocab_size = 601;
    run_whole(host_args);
    expect_equal(expected, outputs.fetch(), kernel);
    args.hidden.shape[0] = 0;
    args.target.shape[0] = 0;
    for (isobit_tensor* view : {&args.logp, &args.lse, &args.entropy, &args.target_logit}) view->shape[0] = 0;
    EXPECT_EQ(isobit_linear_logp(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  }
}

TEST(LinearLogpGpuSmall, Shards) {
  for (const int64_t rows : {5, 90}) {
    const Shape shape{rows, 64, 1400, 2};
    const Problem problem = problem_with_options(shape, 22);
    const Outputs expected = run(problem, kEverything);
    const std::vector<std::vector<int64_t>> cut_lists = {
        {}, {700}, {1, 2, 3}, {64, 128, 192}, {100, 101, 130, 131, 255, 256, 257, 1399}, {0, 512, 512, 1400}, {1024}};
    for (const char* kernel : kKernels) {
      for (const std::vector<int64_t>& cuts : cut_lists) {
        const ShardedRun sharded = run_gpu_sharded(problem, cuts, kEverything, {.kernel = kernel});
        expect_equal(expected, sharded.outputs, std::string("shards on ") + kernel);
      }
    }
  }
}

TEST(LinearLogpGpu, RefusesWhatItCannotTake) {
  Problem problem = random_problem({4, 33, 100}, 23);
  problem.top = 3;
  const GpuProblem device(problem);
  isobit_linear_logp_args args = device.args();
  GpuOutputs outputs(problem, kPlain);
  outputs.attach(&args);
  char why[1024] = "";
  args.kernel = "sm90";
  EXPECT_EQ(isobit_linear_logp_supported(&args, why, sizeof why), ISOBIT_UNSUPPORTED);
  EXPECT_NE(std::string(why).find("multiple of 8"), std::string::npos) << why;
  args.kernel = "cpu";
  EXPECT_EQ(isobit_linear_logp_supported(&args, why, sizeof why), ISOBIT_UNSUPPORTED);
}

}  // namespace
}  // namespace isobit::linear_logp::test
