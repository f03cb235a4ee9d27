// Gradients against the fp64 oracle, and the oracle against differences of the forward oracle.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/linear_logp/backward_bounds.h"
#include "ops/linear_logp/saved.h"
#include "ops/linear_logp/test/backward_problem.h"
#include "ops/linear_logp/tolerance.h"

namespace isobit::linear_logp::test {
namespace {

Problem options_problem(const Shape& shape, unsigned options, uint64_t seed) {
  Problem p = random_problem(shape, seed);
  for (int64_t v = 0; v < shape.vocab && (options & 1) != 0; ++v) p.bias.push_back(0.25f * static_cast<float>(v % 5));
  if ((options & 2) != 0) p.softcap = 6.0f;
  for (int64_t n = 0; n < shape.rows && (options & 4) != 0; ++n) {
    p.temperature.push_back(0.5f + 0.25f * static_cast<float>(n % 4));
  }
  if ((options & 8) != 0) {
    p.target[0] = p.ignore_index;
    if (shape.targets > 1) p.target[1] = p.target[2];
  }
  return p;
}

// Sum of every output times its upstream gradient.
double objective(const ReferenceProblem& problem, const ReferenceUpstream& upstream) {
  double sum = 0;
  for (int64_t n = 0; n < problem.rows; ++n) {
    const ReferenceRow row = reference_row(problem, n);
    for (int64_t k = 0; k < problem.targets; ++k) {
      if (!upstream.logp.empty()) sum += upstream.logp[n * problem.targets + k] * row.logp[k];
    }
    if (!upstream.lse.empty()) sum += upstream.lse[n] * row.lse;
    if (!upstream.entropy.empty()) sum += upstream.entropy[n] * row.entropy;
  }
  return sum;
}

double difference(ReferenceProblem problem, const ReferenceUpstream& upstream, std::vector<double> ReferenceProblem::*x,
                  int64_t at) {
  constexpr double kStep = 1e-5;
  (problem.*x)[at] += kStep;
  const double above = objective(problem, upstream);
  (problem.*x)[at] -= 2 * kStep;
  return (above - objective(problem, upstream)) / (2 * kStep);
}

TEST(BackwardReference, IsTheDerivativeOfTheForwardOracle) {
  for (unsigned options = 0; options < 16; ++options) {
    SCOPED_TRACE(options);
    const Problem p = options_problem({3, 4, 7, 3}, options, 5 + options);
    const ReferenceProblem problem = p.reference();
    for (unsigned present = 1; present < 8; ++present) {
      const ReferenceUpstream upstream = reference_upstream(random_upstream(p, 6, present));
      const ReferenceGradients got = reference_gradients(problem, upstream);
      for (int64_t i = 0; i < 12; ++i) {
        EXPECT_NEAR(got.d_hidden[i], difference(problem, upstream, &ReferenceProblem::hidden, i), 1e-7);
      }
      for (int64_t i = 0; i < 28; ++i) {
        EXPECT_NEAR(got.d_weight[i], difference(problem, upstream, &ReferenceProblem::weight, i), 1e-7);
      }
      for (int64_t i = 0; i < 7 && !problem.bias.empty(); ++i) {
        EXPECT_NEAR(got.d_bias[i], difference(problem, upstream, &ReferenceProblem::bias, i), 1e-7);
      }
    }
  }
}

// The largest error of a call as a part of its bound.
double worst_share(const Problem& p, const UpstreamValues& values, const Gradients& got) {
  const ReferenceProblem problem = p.reference();
  const ReferenceUpstream upstream = reference_upstream(values);
  const ReferenceGradients want = reference_gradients(problem, upstream);
  const GradientBounds bounds = gradient_bounds(problem, upstream, want);
  double worst = 0;
  const auto compare = [&](const Guarded& memory, const std::vector<double>& expected,
                           const std::vector<double>& bound) {
    for (size_t i = 0; i < memory.bytes() / 4; ++i) {
      const double error = std::fabs(memory.as<float>()[i] - expected[i]);
      if (error > 0) worst = std::max(worst, error / bound[i]);
    }
  };
  compare(got.hidden, want.d_hidden, bounds.d_hidden);
  compare(got.weight, want.d_weight, bounds.d_weight);
  compare(got.bias, want.d_bias, bounds.d_bias);
  return worst;
}

TEST(BackwardAccuracy, EveryOptionAndUpstream) {
  for (unsigned options = 0; options < 16; ++options) {
    for (const int64_t targets : {1, 3}) {
      const Problem p = options_problem({5, 24, 150, targets}, options, 100 + options);
      BackwardOptions call;
      if (!p.bias.empty()) call.wanted |= kBiasGradient;
      for (unsigned present = 1; present < 8; ++present) {
        SCOPED_TRACE(testing::Message() << "options " << options << " K " << targets << " upstream " << present);
        const UpstreamValues upstream = random_upstream(p, 7 + present, present);
        EXPECT_LE(worst_share(p, upstream, run_backward(p, upstream, call)), 1.0);
      }
    }
  }
}

TEST(BackwardAccuracy, ABoundNoticesAWrongFormula) {
  const Problem p = options_problem({5, 24, 150, 1}, 4, 3);
  UpstreamValues upstream = random_upstream(p, 8);
  Gradients got = run_backward(p, upstream, {});
  EXPECT_LE(worst_share(p, upstream, got), 1.0);
  upstream.entropy[2] *= 1.02f;
  EXPECT_GT(worst_share(p, upstream, got), 1.0);
}

TEST(BackwardAccuracy, SixteenBitResultsAreTheFp32OnesRounded) {
  const Problem p = options_problem({5, 24, 150, 1}, 1, 3);
  const UpstreamValues upstream = random_upstream(p, 8);
  constexpr unsigned kAll = kHiddenGradient | kWeightGradient | kBiasGradient;
  const Gradients wide = run_backward(p, upstream, {.wanted = kAll, .dtype = ISOBIT_FP32});
  const Gradients narrow = run_backward(p, upstream, {.wanted = kAll, .dtype = ISOBIT_BF16});
  const auto compare = [](const Guarded& fp32, const Guarded& bf16) {
    for (size_t i = 0; i < fp32.bytes() / 4; ++i) {
      EXPECT_EQ(numerics::bf16_from_float(fp32.as<float>()[i]), bf16.as<uint16_t>()[i]);
    }
  };
  compare(wide.hidden, narrow.hidden);
  compare(wide.weight, narrow.weight);
  compare(wide.bias, narrow.bias);
}

// dz of a confident target before its rounding, against fp64, until 1 - p is below 2^-125 and counts as 0.
TEST(BackwardAccuracy, ConfidentTargetKeepsItsDigits) {
  for (const int64_t vocab : {2, 1000, 151936}) {
    double worst = 0;
    double worst_subtracted = 0;
    for (float gap = 1.0f; gap < 85.0f; gap += 3.3f) {
      std::vector<float> logits(vocab);
      for (int64_t v = 0; v < vocab; ++v) logits[v] = 0.01f * static_cast<float>(v % 97);
      const int64_t target = vocab / 3;
      logits[target] = gap + std::log(static_cast<float>(vocab));
      const Problem p = problem_of_logits(logits, target);
      const Guarded saved = save(p);
      const RowRecord record = load_record(saved_arrays(const_cast<void*>(saved.data()), 1), 0);
      ASSERT_EQ(record.lead, target);
      const GradientRow row = gradient_row(record.row, 1.0f, 1.0f, 0.0f, 0.0f, false);
      const GradientTarget upstream = gradient_target(row, 1.0f, 0.0f);
      double others = 0;
      for (int64_t v = 0; v < vocab; ++v) {
        if (v != target) others += std::exp(static_cast<double>(logits[v]) - logits[target]);
      }
      const double exact = others / (1 + others);
      const auto error = [&](bool lead) {
        return std::fabs(gradient_of_target<false>(row, upstream, logits[target], lead, record.others) / exact - 1);
      };
      worst = std::max(worst, error(true));
      worst_subtracted = std::max(worst_subtracted, error(false));
    }
    EXPECT_LE(worst, confident_error(vocab)) << "V " << vocab;
    EXPECT_LE(worst, 0x1p-12);
    EXPECT_GT(worst_subtracted, 0x1p-12) << "the subtraction would do as well";
    RecordProperty("worst_" + std::to_string(vocab), std::to_string(worst));
    std::printf("V %lld: 1 - p off by %.3g of itself, by subtraction %.3g\n", static_cast<long long>(vocab), worst,
                worst_subtracted);
  }
}

// The figure of a public report: one logit 7.6 above the rest gave p - 1 = 0 or -0.0039 from a rounded p.
TEST(BackwardAccuracy, OneLogitAboveTheRest) {
  std::vector<float> logits(4, 0.0f);
  logits[1] = 7.6f + std::log(3.0f);
  Problem p = problem_of_logits(logits, 1);
  p.hidden = {0x3F80};
  const UpstreamValues upstream = {{-1.0f}, {}, {}};
  const Gradients got = run_backward(p, upstream, {.wanted = kWeightGradient});
  const double exact = -std::exp(-7.6) / (1 + std::exp(-7.6));
  EXPECT_NEAR(got.weight_at(1, 0), exact, 0x1p-8 * -exact);
}

TEST(BackwardAccuracy, SubtractedOptionDiffersOnlyInConfidentRows) {
  Problem p = random_problem({8, 16, 300, 1}, 4, 1.0f);
  const UpstreamValues upstream = random_upstream(p, 9, 1);
  const auto rows_of = [&](bool subtract) { return run_backward(p, upstream, {.subtract_p = subtract}); };
  EXPECT_EQ(rows_of(false).bytes(), rows_of(true).bytes()) << "no row is confident";
  for (int64_t v = 0; v < 300; ++v) p.bias.push_back(v == p.target[3] ? 30.0f : 0.0f);
  const Gradients direct = rows_of(false);
  const Gradients subtracted = rows_of(true);
  EXPECT_NE(direct.hidden_row(3), subtracted.hidden_row(3));
}

// Many chunks of rows do not add error: fp32 sums restart every 8,192 rows, whatever the workspace.
TEST(BackwardAccuracy, ErrorIndependentOfChunks) {
  Problem p = random_problem({600, 8, 20, 1}, 12);
  const UpstreamValues upstream = random_upstream(p, 10, 1);
  const Gradients large = run_backward(p, upstream, {.workspace = Workspace::kRecommended});
  const Gradients small = run_backward(p, upstream, {.workspace = Workspace::kMinimum});
  EXPECT_LE(worst_share(p, upstream, large), 1.0);
  EXPECT_EQ(large.bytes(), small.bytes());
}

}  // namespace
}  // namespace isobit::linear_logp::test
