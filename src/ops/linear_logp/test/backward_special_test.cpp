// Ignored, invalid and degenerate rows, and calls without rows.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/linear_logp/test/backward_problem.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kEverything = kHiddenGradient | kWeightGradient | kBiasGradient;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Problem with_bias(Problem p) {
  p.bias.assign(p.shape.vocab, 0.5f);
  return p;
}

bool all_bytes(const std::string& text, char value) { return text == std::string(text.size(), value); }

bool all_nan(const std::string& row) {
  for (size_t i = 0; i < row.size(); i += 4) {
    if (row.compare(i, 4, std::string("\xFF\xFF\xFF\x7F", 4)) != 0) return false;
  }
  return true;
}

TEST(BackwardSpecial, IgnoredRowsAreZeroAndImmune) {
  Problem p = with_bias(random_problem({6, 16, 40, 2}, 3));
  UpstreamValues upstream = random_upstream(p, 4);
  p.target[4] = p.target[5] = p.ignore_index;
  const Gradients clean = run_backward(p, upstream, {.wanted = kEverything});
  EXPECT_TRUE(all_bytes(clean.hidden_row(2), 0));
  for (int64_t k = 0; k < 16; ++k) p.set_hidden(2, k, k % 2 == 0 ? NAN : kInfinity);
  upstream.logp[4] = upstream.lse[2] = upstream.entropy[2] = NAN;
  p.temperature.assign(6, 1.0f);
  p.temperature[2] = -1.0f;
  EXPECT_EQ(run_backward(p, upstream, {.wanted = kEverything}).bytes(), clean.bytes());
}

TEST(BackwardSpecial, InvalidRowsAreNanAndAddNothing) {
  Problem p = with_bias(random_problem({6, 16, 40, 2}, 3));
  p.temperature.assign(6, 1.25f);
  const UpstreamValues upstream = random_upstream(p, 4);
  Problem without = p;
  for (const int64_t n : {1, 4}) without.target[2 * n] = without.target[2 * n + 1] = p.ignore_index;
  p.target[3] = 40;
  p.target[2] = 1;
  p.temperature[4] = 0.0f;
  for (int64_t k = 0; k < 16; ++k) p.set_hidden(1, k, NAN);
  const Gradients got = run_backward(p, upstream, {.wanted = kEverything});
  const Gradients want = run_backward(without, upstream, {.wanted = kEverything});
  EXPECT_TRUE(all_nan(got.hidden_row(1)));
  EXPECT_TRUE(all_nan(got.hidden_row(4)));
  EXPECT_EQ(got.hidden_row(0), want.hidden_row(0));
  EXPECT_EQ(got.weight.contents(), want.weight.contents());
  EXPECT_EQ(got.bias.contents(), want.bias.contents());
  // A target beside an ignored one may be invalid too.
  p.target[2] = p.ignore_index;
  EXPECT_EQ(run_backward(p, upstream, {.wanted = kEverything}).bytes(), got.bytes());
}

TEST(BackwardSpecial, NanLogitsSpoilTheirRow) {
  for (const float bad : {NAN, kInfinity}) {
    Problem p = with_bias(random_problem({3, 16, 40, 1}, 3));
    const UpstreamValues upstream = random_upstream(p, 4);
    const Gradients want = run_backward(p, upstream, {.wanted = kEverything});
    p.set_hidden(1, 0, bad);
    const Gradients got = run_backward(p, upstream, {.wanted = kEverything});
    EXPECT_TRUE(all_nan(got.hidden_row(1)));
    EXPECT_EQ(got.hidden_row(0), want.hidden_row(0));
    EXPECT_EQ(got.hidden_row(2), want.hidden_row(2));
    EXPECT_TRUE(all_nan(got.weight.contents()));
    EXPECT_TRUE(all_nan(got.bias.contents()));
  }
}

TEST(BackwardSpecial, NoLogitIsFinite) {
  Problem p = problem_of_logits(std::vector<float>(5, -kInfinity), 2);
  EXPECT_TRUE(all_nan(run_backward(p, random_upstream(p, 4), {.wanted = kEverything}).bytes()));
}

// Masked ids get exactly nothing; a masked target still receives its upstream gradient.
TEST(BackwardSpecial, MaskedIds) {
  Problem p = problem_of_logits({0.0f, -kInfinity, 1.0f, -kInfinity}, 3);
  const UpstreamValues upstream = {{2.0f}, {0.5f}, {0.25f}};
  const Gradients got = run_backward(p, upstream, {.wanted = kBiasGradient});
  EXPECT_EQ(got.bias_at(1), 0.0);
  EXPECT_EQ(got.bias_at(3), 2.0);
  const double odds = std::exp(1.0);
  const double h0 = std::log(1 + odds) - odds / (1 + odds);
  const double p0 = 1 / (1 + odds);
  const double expected = p0 * (0.5 - 2.0 - 0.25 * (std::log(p0) + h0));
  EXPECT_NEAR(got.bias_at(0), expected, 0x1p-8 * std::fabs(expected));
}

// Logits at the ends of fp32's range stay finite; up to 2^28 they are told apart.
TEST(BackwardSpecial, HugeLogits) {
  Problem p = problem_of_logits({2.6e8f, -2.6e8f, 1e8f, 0.0f}, 0);
  const Gradients got = run_backward(p, {{1.0f}, {}, {1.0f}}, {.wanted = kBiasGradient});
  for (int64_t v = 0; v < 4; ++v) EXPECT_NEAR(got.bias_at(v), 0.0, 0x1p-23) << v;
  p.target = {3};
  const Gradients lost = run_backward(p, {{1.0f}, {}, {}}, {.wanted = kBiasGradient});
  EXPECT_EQ(lost.bias_at(0), -1.0);
  EXPECT_EQ(lost.bias_at(3), 1.0);
  p.bias = {3e38f, -3e38f, 1e30f, 0.0f};
  const Gradients finite = run_backward(p, {{1.0f}, {1.0f}, {1.0f}}, {.wanted = kBiasGradient});
  for (int64_t v = 0; v < 4; ++v) EXPECT_TRUE(std::isfinite(finite.bias_at(v))) << v;
}

TEST(BackwardSpecial, AllRowsIgnored) {
  Problem p = with_bias(random_problem({6, 16, 40, 1}, 3));
  p.target.assign(6, p.ignore_index);
  const UpstreamValues upstream = random_upstream(p, 4);
  EXPECT_TRUE(all_bytes(run_backward(p, upstream, {.wanted = kEverything}).bytes(), 0));
  BackwardOptions accumulate = {.wanted = kWeightGradient | kBiasGradient};
  accumulate.change = [](BackwardArgs* args) { args->accumulate = 1; };
  EXPECT_TRUE(run_backward(p, upstream, accumulate).poisoned()) << "nothing to add, so the buffers' bytes stay";
}

TEST(BackwardSpecial, NoRows) {
  Problem p = with_bias(random_problem({1, 16, 40, 1}, 3));
  const UpstreamValues upstream = random_upstream(p, 4);
  Gradients out(p, kEverything, ISOBIT_BF16);
  BackwardArgs args = backward_args(p, upstream);
  out.attach(&args);
  for (isobit_tensor* tensor :
       {&args.forward.hidden, &args.forward.target, &args.d_logp, &args.d_lse, &args.d_entropy, &args.d_hidden}) {
    tensor->shape[0] = 0;
    tensor->data = nullptr;
  }
  ASSERT_EQ(isobit_linear_logp_backward(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_TRUE(all_bytes(out.weight.contents() + out.bias.contents(), 0));
}

// Padded weight rows do not exist: +0, and untouched with accumulate.
TEST(BackwardSpecial, PaddedWeightRows) {
  Problem p = with_bias(random_problem({6, 16, 40, 1}, 3));
  for (auto& id : p.target) id %= 33;
  const UpstreamValues upstream = random_upstream(p, 4);
  BackwardOptions options = {.wanted = kEverything};
  options.change = [](BackwardArgs* args) { args->forward.vocab_size = 33; };
  const Gradients padded = run_backward(p, upstream, options);
  EXPECT_TRUE(all_bytes(padded.weight.contents().substr(33 * 16 * 4), 0));
  EXPECT_TRUE(all_bytes(padded.bias.contents().substr(33 * 4), 0));
  Problem exact = p;
  exact.shape.vocab = 33;
  exact.bias.resize(33);
  const Gradients want = run_backward(exact, upstream, {.wanted = kEverything});
  EXPECT_EQ(padded.hidden.contents(), want.hidden.contents());
  EXPECT_EQ(padded.weight.contents().substr(0, 33 * 16 * 4), want.weight.contents());
  Gradients sums(p, kWeightGradient, ISOBIT_FP32);
  options.change = [](BackwardArgs* args) {
    args->forward.vocab_size = 33;
    args->accumulate = 1;
  };
  run_backward_into(p, upstream, options, &sums);
  EXPECT_EQ(sums.weight.contents().substr(33 * 16 * 4), std::string(7 * 16 * 4, '\xA5'));
}

// The outputs of the forward pass come with the gradients, in the forward call's bytes.
TEST(BackwardSpecial, ForwardOutputs) {
  const Problem p = with_bias(random_problem({6, 16, 300, 2}, 3));
  const UpstreamValues upstream = random_upstream(p, 4);
  constexpr unsigned kOutputs = Outputs::kLogp | Outputs::kLse | Outputs::kEntropy;
  const Outputs want = run(p, kOutputs);
  Outputs got(p, kOutputs);
  BackwardOptions options;
  options.change = [&](BackwardArgs* args) { got.attach(&args->forward); };
  run_backward(p, upstream, options);
  EXPECT_EQ(got.bytes(), want.bytes());
}

}  // namespace
}  // namespace isobit::linear_logp::test
