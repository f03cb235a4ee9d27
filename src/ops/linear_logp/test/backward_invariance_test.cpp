// Gradients in bytes over batches, permutations, chunks, threads, calls, shards and strides.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "ops/linear_logp/segments.h"
#include "ops/linear_logp/test/backward_problem.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kEverything = kHiddenGradient | kWeightGradient | kBiasGradient;

Problem problem_with_options(const Shape& shape) {
  Problem p = random_problem(shape, 17);
  for (int64_t v = 0; v < shape.vocab; ++v) p.bias.push_back(0.3f * static_cast<float>(v % 3));
  for (int64_t n = 0; n < shape.rows; ++n) p.temperature.push_back(n % 2 == 0 ? 1.0f : 1.3f);
  p.softcap = 20.0f;
  for (int64_t k = 0; k < shape.targets && shape.rows > 4; ++k) p.target[4 * shape.targets + k] = p.ignore_index;
  return p;
}

// The rows of a problem in another order, some of them or several times.
Problem select_rows(const Problem& p, const std::vector<int64_t>& rows) {
  Problem out = p;
  out.shape.rows = static_cast<int64_t>(rows.size());
  out.hidden.clear();
  out.target.clear();
  out.temperature.clear();
  for (const int64_t row : rows) {
    const auto hidden = p.hidden.begin() + row * p.hidden_stride;
    out.hidden.insert(out.hidden.end(), hidden, hidden + p.shape.width);
    const auto target = p.target.begin() + row * p.shape.targets;
    out.target.insert(out.target.end(), target, target + p.shape.targets);
    if (!p.temperature.empty()) out.temperature.push_back(p.temperature[row]);
  }
  return out;
}

UpstreamValues select_rows(const Problem& p, const UpstreamValues& upstream, const std::vector<int64_t>& rows) {
  UpstreamValues out;
  for (const int64_t row : rows) {
    const auto logp = upstream.logp.begin() + row * p.shape.targets;
    out.logp.insert(out.logp.end(), logp, logp + p.shape.targets);
    out.lse.push_back(upstream.lse[row]);
    out.entropy.push_back(upstream.entropy[row]);
  }
  return out;
}

TEST(BackwardInvariance, HiddenGradientOfARowAnywhere) {
  const Problem p = problem_with_options({40, 24, 200, 2});
  const UpstreamValues upstream = random_upstream(p, 3);
  const Gradients all = run_backward(p, upstream, {.wanted = kHiddenGradient});
  for (const std::vector<int64_t>& rows : std::vector<std::vector<int64_t>>{{7}, {39, 0, 7}, {5, 5, 4, 5}}) {
    const Problem some = select_rows(p, rows);
    const Gradients got = run_backward(some, select_rows(p, upstream, rows), {.wanted = kHiddenGradient});
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(got.hidden_row(static_cast<int64_t>(i)), all.hidden_row(rows[i])) << "row " << rows[i];
    }
  }
  std::vector<int64_t> reversed(40);
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const Gradients got =
      run_backward(select_rows(p, reversed), select_rows(p, upstream, reversed), {.wanted = kHiddenGradient});
  for (int64_t n = 0; n < 40; ++n) EXPECT_EQ(got.hidden_row(n), all.hidden_row(39 - n));
}

TEST(BackwardInvariance, ThreadsChunksAndSaving) {
  const Problem p = problem_with_options({300, 24, 200, 2});
  const UpstreamValues upstream = random_upstream(p, 3);
  const std::string want = run_backward(p, upstream, {.wanted = kEverything}).bytes();
  for (const int threads : {1, 2, 5}) {
    for (const Workspace workspace : {Workspace::kMinimum, Workspace::kRecommended}) {
      for (const bool saves : {false, true}) {
        SCOPED_TRACE(testing::Message() << threads << " threads, saves " << saves);
        const Gradients got = run_backward(
            p, upstream, {.wanted = kEverything, .workspace = workspace, .threads = threads, .saves = saves});
        EXPECT_EQ(got.bytes(), want);
      }
    }
  }
  // One gradient at a time is the same as all at once.
  std::string parts;
  for (const unsigned one : {kHiddenGradient, kWeightGradient, kBiasGradient}) {
    parts += run_backward(p, upstream, {.wanted = one}).bytes();
  }
  EXPECT_EQ(parts, want);
}

// Ignored rows can be left out, moved or filled with anything.
TEST(BackwardInvariance, WeightGradientKnowsValidRowsOnly) {
  Problem p = problem_with_options({50, 24, 200, 1});
  const UpstreamValues upstream = random_upstream(p, 3);
  std::vector<int64_t> kept;
  for (int64_t n = 0; n < 50; ++n) {
    if (n % 3 == 1) {
      p.target[n] = p.ignore_index;
      for (int64_t k = 0; k < 24; ++k) p.hidden[n * 24 + k] = 0x7FC0;  // NaN
    } else if (n != 4) {
      kept.push_back(n);
    }
  }
  const Gradients all = run_backward(p, upstream, {.wanted = kEverything});
  const Gradients dense = run_backward(select_rows(p, kept), select_rows(p, upstream, kept), {.wanted = kEverything});
  EXPECT_EQ(all.weight.contents(), dense.weight.contents());
  EXPECT_EQ(all.bias.contents(), dense.bias.contents());
}

// Calls that are split at 8,192 valid rows and accumulate in fp32 equal one call.
TEST(BackwardInvariance, AccumulationOverCalls) {
  constexpr int64_t kRows = 2 * 8192 + 500;
  Problem p = random_problem({kRows, 8, 6}, 5);
  p.bias.assign(6, 0.5f);
  const UpstreamValues upstream = random_upstream(p, 6);
  constexpr unsigned kWanted = kWeightGradient | kBiasGradient;
  const Gradients whole = run_backward(p, upstream, {.wanted = kWanted});
  const auto in_calls = [&](int64_t cut) {
    Gradients sums(p, kWanted, ISOBIT_FP32);
    for (int64_t begin = 0; begin < kRows; begin += cut) {
      std::vector<int64_t> rows(std::min(cut, kRows - begin));
      std::iota(rows.begin(), rows.end(), begin);
      const Problem some = select_rows(p, rows);
      BackwardOptions options;
      options.change = [&](BackwardArgs* args) { args->accumulate = begin > 0 ? 1 : 0; };
      run_backward_into(some, select_rows(p, upstream, rows), options, &sums);
    }
    return sums.bytes();
  };
  EXPECT_EQ(in_calls(8192), whole.bytes());
  EXPECT_NE(in_calls(4096), whole.bytes()) << "the sums are too short to notice another cut";
}

// One part per shard; d_hidden is merged, d_weight and d_bias are the shard's rows.
void expect_shards(const Problem& p, const UpstreamValues& upstream, const std::vector<int64_t>& cuts) {
  const Gradients whole = run_backward(p, upstream, {.wanted = kEverything});
  Guarded saved = save(p);
  Gradients sharded(p, kEverything, ISOBIT_FP32);
  std::vector<Guarded> parts;
  std::vector<isobit_linear_logp_state> listed;
  BackwardArgs all = backward_args(p, upstream);
  sharded.attach(&all);
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const int64_t first = cuts[i];
    const int64_t count = cuts[i + 1] - first;
    BackwardArgs args = all;
    args.saved = saved.data();
    args.d_hidden = {};
    args.forward.first_id = first;
    args.forward.vocab_size = p.shape.vocab;
    args.forward.weight = matrix(&p.weight[first * p.weight_stride], ISOBIT_BF16, count, p.shape.width);
    args.forward.bias = vector(&p.bias[first], ISOBIT_FP32, count);
    args.d_weight =
        matrix(static_cast<float*>(sharded.weight.data()) + first * p.shape.width, ISOBIT_FP32, count, p.shape.width);
    args.d_bias = vector(static_cast<float*>(sharded.bias.data()) + first, ISOBIT_FP32, count);
    size_t bytes = 0;
    ASSERT_EQ(isobit_linear_logp_part_bytes(&args, &bytes), ISOBIT_OK) << isobit_last_error();
    parts.emplace_back(bytes);
    with_workspace(args, Workspace::kRecommended, [&](const BackwardArgs* a) {
      return isobit_linear_logp_backward_shard(a, parts.back().data(), nullptr);
    });
    EXPECT_TRUE(parts.back().guards_intact());
    listed.insert(listed.begin(), {first, count, parts.back().data()});
  }
  BackwardArgs merge = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
  merge.forward.vocab_size = p.shape.vocab;
  merge.d_hidden = all.d_hidden;
  ASSERT_EQ(isobit_linear_logp_backward_merge(&merge, listed.data(), static_cast<int32_t>(listed.size()), nullptr),
            ISOBIT_OK)
      << isobit_last_error();
  EXPECT_EQ(sharded.bytes(), whole.bytes());
}

TEST(BackwardInvariance, EqualShards) {
  for (const int64_t vocab : {160, 336}) {
    Problem p = problem_with_options({9, 24, vocab, 2});
    p.target[0] = vocab + 3;  // an invalid row
    const UpstreamValues upstream = random_upstream(p, 3);
    for (const int64_t ranks : {1, 2, 4, 8, 16}) {
      SCOPED_TRACE(testing::Message() << vocab << " ids on " << ranks);
      std::vector<int64_t> cuts;
      for (int64_t r = 0; r <= ranks; ++r) cuts.push_back(r * vocab / ranks);
      expect_shards(p, upstream, cuts);
    }
  }
}

TEST(BackwardInvariance, UnequalShardsOfWholeSegments) {
  const Problem p = problem_with_options({5, 24, 160, 1});
  const UpstreamValues upstream = random_upstream(p, 3);
  expect_shards(p, upstream, {0, 50, 110, 160});
  expect_shards(p, upstream, {0, 10, 160});
  // A vocabulary whose last segments are short or empty.
  const Problem odd = problem_with_options({5, 24, 17, 1});
  expect_shards(odd, random_upstream(odd, 3), {0, 4, 8, 17});
}

// A row's record from the states of shards at odd borders is that of one call.
TEST(BackwardInvariance, RecordFromStates) {
  Problem p = problem_with_options({9, 24, 700, 2});
  p.target[0] = 703;  // an invalid row
  const Guarded want = save(p, {.subtract_p = true});
  const Outputs outputs = run(p, Outputs::kLogp | Outputs::kEntropy);
  Outputs merged(p, Outputs::kLogp | Outputs::kEntropy);
  std::vector<Guarded> memory;
  std::vector<isobit_linear_logp_state> states;
  const std::vector<int64_t> cuts = {0, 1, 130, 141, 700};
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    isobit_linear_logp_args shard = p.args();
    merged.attach(&shard);
    shard.vocab_size = 700;
    shard.first_id = cuts[i];
    shard.weight = matrix(&p.weight[cuts[i] * 24], ISOBIT_BF16, cuts[i + 1] - cuts[i], 24);
    shard.bias = vector(&p.bias[cuts[i]], ISOBIT_FP32, cuts[i + 1] - cuts[i]);
    size_t bytes = 0;
    size_t minimum = 0;
    ASSERT_EQ(isobit_linear_logp_state_bytes(&shard, &bytes), ISOBIT_OK);
    ASSERT_EQ(isobit_linear_logp_workspace(&shard, &minimum, nullptr), ISOBIT_OK);
    Guarded workspace(minimum);
    shard.workspace = workspace.data();
    shard.workspace_bytes = minimum;
    memory.emplace_back(bytes);
    ASSERT_EQ(isobit_linear_logp_shard(&shard, memory.back().data(), nullptr), ISOBIT_OK) << isobit_last_error();
    states.push_back({cuts[i], cuts[i + 1] - cuts[i], memory.back().data()});
  }
  const UpstreamValues none;
  BackwardArgs args = backward_args(p, none);
  args.forward.hidden = args.forward.weight = args.forward.bias = args.forward.temperature = {};
  args.forward.vocab_size = 700;
  args.subtract_p = 1;
  merged.attach(&args.forward);
  Guarded saved(want.bytes());
  args.saved = saved.data();
  const auto merge = [&] {
    return isobit_linear_logp_save_merge(&args, states.data(), static_cast<int32_t>(states.size()), nullptr);
  };
  ASSERT_EQ(merge(), ISOBIT_OK) << isobit_last_error();
  EXPECT_TRUE(saved.guards_intact());
  EXPECT_EQ(merged.bytes(), outputs.bytes());
  const size_t stride = 12 * 4;  // 9 rows, padded
  for (size_t array = 0; array < 6; ++array) {
    EXPECT_EQ(saved.contents().substr(array * stride, 36), want.contents().substr(array * stride, 36)) << array;
  }
  args.subtract_p = 0;
  EXPECT_EQ(merge(), ISOBIT_INVALID_ARGUMENT) << "a state does not hold the others' sums";
  args.subtract_p = 1;
  args.forward.entropy = {};
  EXPECT_EQ(merge(), ISOBIT_INVALID_ARGUMENT) << "q is in the states";
}

TEST(BackwardInvariance, StridedAndExpandedUpstream) {
  const Problem p = problem_with_options({12, 24, 100, 3});
  UpstreamValues upstream = random_upstream(p, 3);
  std::fill(upstream.logp.begin(), upstream.logp.end(), -0.25f);
  std::fill(upstream.lse.begin(), upstream.lse.end(), 0.125f);
  const std::string want = run_backward(p, upstream, {.wanted = kEverything}).bytes();
  std::vector<float> wide(12 * 5, 99.0f);
  for (int64_t n = 0; n < 12; ++n) wide[n * 5] = upstream.entropy[n];
  const float logp = -0.25f;
  const float lse = 0.125f;
  BackwardOptions options = {.wanted = kEverything};
  options.change = [&](BackwardArgs* args) {
    args->d_logp = {const_cast<float*>(&logp), ISOBIT_FP32, ISOBIT_CPU, 0, 2, {12, 3}, {0, 0}};
    args->d_lse = vector(&lse, ISOBIT_FP32, 12, 0);
    args->d_entropy = vector(wide.data(), ISOBIT_FP32, 12, 5);
  };
  EXPECT_EQ(run_backward(p, upstream, options).bytes(), want);
}

TEST(BackwardInvariance, StridedOutputs) {
  const Problem p = problem_with_options({12, 24, 100, 1});
  const UpstreamValues upstream = random_upstream(p, 3);
  const Gradients want = run_backward(p, upstream, {.wanted = kEverything});
  std::vector<float> hidden(12 * 30, 7.0f), weight(100 * 31, 7.0f), bias(100 * 2, 7.0f);
  BackwardOptions options = {.wanted = 0};
  options.change = [&](BackwardArgs* args) {
    args->d_hidden = matrix(hidden.data(), ISOBIT_FP32, 12, 24, 30);
    args->d_weight = matrix(weight.data(), ISOBIT_FP32, 100, 24, 31);
    args->d_bias = vector(bias.data(), ISOBIT_FP32, 100, 2);
  };
  run_backward(p, upstream, options);
  const auto compare = [](const std::vector<float>& got, int64_t stride, const Guarded& expected, int64_t columns) {
    for (size_t i = 0; i < got.size(); ++i) {
      const int64_t column = static_cast<int64_t>(i) % stride;
      const float value =
          column < columns ? expected.as<float>()[static_cast<int64_t>(i) / stride * columns + column] : 7.0f;
      EXPECT_EQ(bits_of(got[i]), bits_of(value));
    }
  };
  compare(hidden, 30, want.hidden, 24);
  compare(weight, 31, want.weight, 24);
  compare(bias, 2, want.bias, 1);
}

}  // namespace
}  // namespace isobit::linear_logp::test
