// Errors against fp64 within the bounds of tolerance.h, and what holds for every finite logit.
#include "ops/linear_logp/tolerance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ops/linear_logp/test/problem.h"

namespace isobit::linear_logp::test {
namespace {

double mean_weight(const std::vector<double>& logits, double lse) {
  double largest = -std::numeric_limits<double>::infinity();
  double size = 0;
  for (const double z : logits) {
    largest = std::max(largest, z);
    size = std::max(size, std::fabs(z));
  }
  double plain = 0;
  double relative = 0;
  for (const double z : logits) {
    const double p = std::exp(z - lse);
    if (p == 0) continue;
    plain += p * std::fabs(z);
    relative += p * (largest - z);
  }
  return size <= 60 ? plain : 120 + 2 * relative;
}

// Logits given as they are, so that only the reduction's error counts.
void expect_accurate(const std::vector<float>& logits, int64_t target) {
  const Problem p = problem_of_logits(logits, target);
  const Outputs out = run(p, Outputs::kLogp | Outputs::kLse | Outputs::kEntropy);
  const std::vector<double> exact(logits.begin(), logits.end());
  const ReferenceRow row = reference_from_logits(p.reference(), 0, exact);
  const int64_t v = p.shape.vocab;
  EXPECT_NEAR(out.lse_at(0), row.lse, lse_bound(row.lse, v));
  EXPECT_NEAR(out.logp_at(0), row.logp[0], logp_bound(row.logp[0], v));
  EXPECT_NEAR(out.entropy_at(0), row.entropy, entropy_bound(row.lse, row.entropy, mean_weight(exact, row.lse), v));
  EXPECT_LE(out.logp_at(0), 0.0f);
  EXPECT_GE(out.entropy_at(0), 0.0f);
}

TEST(Accuracy, LogitsOfEverySizeUpToTheBound) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (const int64_t vocab : {1, 2, 64, 129, 1025, 9000}) {
    for (const float scale : {0.0f, 1e-6f, 0.3f, 3.0f, 15.0f, 80.0f, 1000.0f, 1e5f}) {
      for (const float shift : {0.0f, -50.0f, 55.0f, -3000.0f, 5e5f, -1e6f}) {
        std::vector<float> logits(static_cast<size_t>(vocab));
        for (float& z : logits) {
          z = std::clamp(normal(random) * scale + shift, -static_cast<float>(kBoundedLogit),
                         static_cast<float>(kBoundedLogit));
        }
        SCOPED_TRACE(testing::Message() << "V = " << vocab << ", scale " << scale << ", shift " << shift);
        expect_accurate(logits, static_cast<int64_t>(random() % static_cast<uint64_t>(vocab)));
        // The best id as the target, where log-probabilities are near 0.
        expect_accurate(logits, std::max_element(logits.begin(), logits.end()) - logits.begin());
      }
    }
  }
}

TEST(Accuracy, LongSumsOfEqualTerms) {
  for (const int64_t vocab : {8193, 50257, 151936}) {
    for (const float z : {0.0f, 1.7f, -59.0f, 100.0f}) {
      SCOPED_TRACE(testing::Message() << vocab << " logits of " << z);
      expect_accurate(std::vector<float>(static_cast<size_t>(vocab), z), vocab / 2);
    }
  }
}

TEST(Accuracy, LogitsOfAMaskedRow) {
  std::mt19937_64 random(2);
  std::normal_distribution<float> normal(0.0f, 5.0f);
  std::vector<float> logits(3000, -std::numeric_limits<float>::infinity());
  for (int i = 0; i < 40; ++i) logits[random() % logits.size()] = normal(random);
  logits[7] = 1.0f;
  expect_accurate(logits, 7);
}

TEST(Accuracy, WholeOperatorWithinTheSumOfItsBounds) {
  for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP16}) {
    for (const int64_t width : {1, 15, 16, 17, 640}) {
      Problem p = random_problem({3, width, 700}, 3, 5.0f, dtype);
      p.temperature = {1.0f, 0.6f, 3.0f};
      const Outputs out = run(p);
      const ReferenceProblem reference = p.reference();
      for (int64_t n = 0; n < 3; ++n) {
        SCOPED_TRACE(testing::Message() << "H = " << width << ", row " << n);
        double z_error = 0;
        const std::vector<double> logits = reference_logits(reference, n);
        for (int64_t v = 0; v < 700; ++v) {
          double absolute = 0;
          for (int64_t k = 0; k < width; ++k) {
            absolute += std::fabs(reference.hidden[n * width + k] * reference.weight[v * width + k]);
          }
          z_error = std::max(z_error, logit_bound(width, absolute, logits[v], p.temperature[n]));
        }
        const ReferenceRow row = reference_row(reference, n);
        EXPECT_NEAR(out.logit_at(n), row.target_logit[0], z_error);
        EXPECT_NEAR(out.lse_at(n), row.lse, z_error + lse_bound(row.lse, 700));
        EXPECT_NEAR(out.logp_at(n), row.logp[0], 2 * z_error + logp_bound(row.logp[0], 700));
        const double weight = mean_weight(logits, row.lse);
        EXPECT_NEAR(out.entropy_at(n), row.entropy,
                    2 * z_error * (weight + std::fabs(row.lse) + 1) + entropy_bound(row.lse, row.entropy, weight, 700));
      }
    }
  }
}

TEST(Accuracy, EveryFiniteLogitGivesFiniteOutputs) {
  const float largest = std::numeric_limits<float>::max();
  std::mt19937_64 random(4);
  for (const float size : {100.0f, 1e4f, 0x1p20f, 0x1p21f, 0x1p24f, 0x1p28f, 1e30f, largest}) {
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<float> logits(1500);
      for (float& z : logits) {
        const float part = std::uniform_real_distribution<float>(-1.0f, 1.0f)(random);
        z = kind == 0 ? size : kind == 1 ? -size : kind == 2 ? size * part : (random() % 2 == 0 ? size : -size);
      }
      const auto target = static_cast<int64_t>(random() % logits.size());
      Problem p = problem_of_logits(logits, target);
      p.top = 3;
      const Outputs out = run(p);
      EXPECT_TRUE(std::isfinite(out.lse_at(0))) << size << " " << kind;
      EXPECT_TRUE(std::isfinite(out.entropy_at(0))) << size << " " << kind;
      EXPECT_TRUE(std::isfinite(out.logp_at(0))) << size << " " << kind;
      EXPECT_LE(out.logp_at(0), 0.0f);
      EXPECT_GE(out.entropy_at(0), 0.0f);
      EXPECT_TRUE(std::isfinite(out.top_logp_at(0, 2)));
      EXPECT_EQ(out.logit_at(0), logits[static_cast<size_t>(target)]);
    }
  }
}

TEST(Accuracy, CertainTargetsHaveALogProbabilityNextToZero) {
  std::vector<float> logits(200, 0.0f);
  logits[77] = 200.0f;
  expect_accurate(logits, 77);
  const Outputs out = run(problem_of_logits(logits, 77));
  EXPECT_FALSE(std::signbit(out.logp_at(0)) && out.logp_at(0) == 0.0f) << "-0";
  EXPECT_GT(out.logp_at(0), -1e-6f);
}

TEST(Accuracy, EqualLogits) {
  // ln 2 for two ids, at any size; -0 is never written.
  for (const float z : {0.0f, -3.5f, 59.0f, 12345.0f, -9e5f, 1e8f, -1e30f}) {
    SCOPED_TRACE(z);
    const Outputs one = run(problem_of_logits({z}, 0));
    EXPECT_NEAR(one.logp_at(0), 0.0, logp_bound(0.0, 1));
    EXPECT_LE(one.logp_at(0), 0.0f);
    EXPECT_NE(bits_of(one.logp_at(0)), 0x80000000u);
    EXPECT_EQ(one.rank_at(0), 0);
    const Outputs two = run(problem_of_logits({z, z}, 1));
    EXPECT_NEAR(two.logp_at(0), -std::log(2.0), logp_bound(0.7, 2));
    EXPECT_NEAR(two.entropy_at(0), std::log(2.0), entropy_bound(std::fabs(z) <= 60 ? z : 60, 0.7, 120, 2));
    EXPECT_EQ(two.rank_at(0), 1);
  }
}

}  // namespace
}  // namespace isobit::linear_logp::test
