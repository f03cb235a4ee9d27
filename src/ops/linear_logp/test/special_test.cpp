// Special rows and targets: ignored, outside the vocabulary, infinite, NaN, without a valid temperature.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "ops/linear_logp/test/problem.h"

namespace isobit::linear_logp::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kMinusInfinity = 0xFF800000;

// Whole calls and shard calls must agree on every special row.
void for_each_way(const Problem& p, const std::function<void(const Outputs&, bool whole)>& check) {
  check(run(p), true);
  Problem without_top = p;
  without_top.top = 0;
  const int64_t v = p.shape.vocab;
  for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{}, {v / 2}, {v / 3, v / 3 + 1}}) {
    SCOPED_TRACE(testing::Message() << cuts.size() + 1 << " shards");
    check(run_sharded(without_top, cuts, Outputs::kAll), false);
  }
}

void expect_nan_row(const Outputs& out, int64_t row, bool whole) {
  EXPECT_EQ(bits_of(out.lse_at(row)), kNan);
  EXPECT_EQ(bits_of(out.entropy_at(row)), kNan);
  EXPECT_EQ(bits_of(out.logp_at(row)), kNan);
  EXPECT_EQ(out.rank_at(row), -1);
  for (int64_t t = 0; whole && t < out.top; ++t) {
    EXPECT_EQ(out.top_id_at(row, t), -1);
    EXPECT_EQ(bits_of(out.top_logp_at(row, t)), kNan);
  }
}

Problem three_rows() {
  Problem p = random_problem({3, 24, 500}, 21);
  p.top = 3;
  return p;
}

TEST(Special, IgnoredRowsAreZeroAndTheirHiddenStateIsNotUsed) {
  Problem p = three_rows();
  const std::string neighbour = run(p).row_bytes(2);
  p.target[1] = -100;
  for (int64_t k = 0; k < 24; ++k) p.set_hidden(1, k, std::numeric_limits<float>::quiet_NaN());
  for_each_way(p, [&](const Outputs& out, bool whole) {
    EXPECT_EQ(out.row_bytes(1), std::string(out.row_bytes(1).size(), '\0'));
    if (whole) {
      EXPECT_EQ(out.row_bytes(2), neighbour);
    }
  });
}

TEST(Special, IgnoredRowsWinOverBadTemperatures) {
  Problem p = three_rows();
  p.target[1] = -100;
  p.temperature = {1.0f, -1.0f, 1.0f};
  for_each_way(
      p, [](const Outputs& out, bool) { EXPECT_EQ(out.row_bytes(1), std::string(out.row_bytes(1).size(), '\0')); });
}

TEST(Special, OneIgnoredTargetOfManyHidesOnlyItself) {
  Problem p = random_problem({2, 24, 500, 3}, 22);
  const Outputs full = run(p);
  p.target[1] = -100;
  for_each_way(p, [&](const Outputs& out, bool) {
    EXPECT_EQ(bits_of(out.logp_at(0, 1)), 0u);
    EXPECT_EQ(bits_of(out.logit_at(0, 1)), 0u);
    EXPECT_EQ(out.rank_at(0, 1), 0);
    EXPECT_EQ(bits_of(out.logp_at(0, 0)), bits_of(full.logp_at(0, 0)));
    EXPECT_EQ(bits_of(out.lse_at(0)), bits_of(full.lse_at(0)));
  });
}

TEST(Special, IgnoreIndexMayBeAnyInteger) {
  for (const int64_t index : {int64_t{0}, int64_t{255}, std::numeric_limits<int64_t>::min()}) {
    Problem p = random_problem({3, 24, 10}, 23);
    p.ignore_index = index;
    p.target = {5, index, 7};
    p.top = 2;
    for_each_way(p, [](const Outputs& out, bool) {
      EXPECT_EQ(out.row_bytes(1), std::string(out.row_bytes(1).size(), '\0'));
      EXPECT_LT(out.logp_at(0), 0.0f);
    });
    p.use_ignore_index = false;
    for_each_way(p, [index](const Outputs& out, bool whole) {
      if (index == 0) {
        EXPECT_LT(out.logp_at(1), 0.0f);
      } else {
        expect_nan_row(out, 1, whole);
      }
    });
  }
}

TEST(Special, TargetsOutsideTheVocabularyGiveNanRows) {
  for (const int64_t target : {int64_t{500}, int64_t{-1}, int64_t{-4}, int64_t{1} << 40, int64_t{-1} << 40}) {
    Problem p = three_rows();
    const std::string neighbour = run(p).row_bytes(0);
    p.target[1] = target;
    for_each_way(p, [&](const Outputs& out, bool whole) {
      expect_nan_row(out, 1, whole);
      EXPECT_EQ(bits_of(out.logit_at(1)), kNan);
      if (whole) {
        EXPECT_EQ(out.row_bytes(0), neighbour);
      }
    });
  }
}

TEST(Special, OneTargetOutsideSpoilsTheRowsSumsButNotItsOtherTargets) {
  Problem p = random_problem({2, 24, 500, 3}, 24);
  p.top = 2;
  const Outputs full = run(p);
  p.target[1] = 500;
  for_each_way(p, [&](const Outputs& out, bool whole) {
    EXPECT_EQ(bits_of(out.lse_at(0)), kNan);
    EXPECT_EQ(bits_of(out.entropy_at(0)), kNan);
    EXPECT_EQ(bits_of(out.logp_at(0, 1)), kNan);
    EXPECT_EQ(out.rank_at(0, 1), -1);
    EXPECT_EQ(bits_of(out.logp_at(0, 0)), bits_of(full.logp_at(0, 0)));
    EXPECT_EQ(out.rank_at(0, 2), full.rank_at(0, 2));
    if (whole) {
      EXPECT_EQ(out.top_id_at(0, 0), -1);
    }
  });
}

TEST(Special, TemperaturesThatAreNotAboveZeroGiveNanRows) {
  for (const float t : {0.0f, -0.0f, -1.0f, std::nanf(""), -kInfinity}) {
    Problem p = three_rows();
    p.temperature = {1.0f, t, 1.0f};
    for_each_way(p, [](const Outputs& out, bool whole) {
      expect_nan_row(out, 1, whole);
      EXPECT_EQ(bits_of(out.logit_at(1)), kNan);
      EXPECT_LT(out.logp_at(0), 0.0f);
    });
  }
}

TEST(Special, AnInfiniteTemperatureMakesAllIdsEqual) {
  Problem p = three_rows();
  p.temperature = {1.0f, kInfinity, 1.0f};
  for_each_way(p, [](const Outputs& out, bool) { EXPECT_NEAR(out.entropy_at(1), std::log(500.0), 1e-5); });
}

TEST(Special, NanAndPlusInfinityAnywhereSpoilTheRow) {
  for (const float bad : {kInfinity, std::nanf("")}) {
    for (const size_t at : {size_t{0}, size_t{63}, size_t{64}, size_t{700}, size_t{1299}}) {
      std::vector<float> logits(1300, 2.0f);
      logits[at] = bad;
      logits[100] = 900.0f;  // its unit's exponent must not scale the NaN away
      Problem p = problem_of_logits(logits, 5);
      p.top = 2;
      for_each_way(p, [](const Outputs& out, bool whole) {
        expect_nan_row(out, 0, whole);
        EXPECT_EQ(out.logit_at(0), 2.0f);
      });
    }
  }
}

TEST(Special, OperandsThatOverflowOrAreNanSpoilOnlyTheirRow) {
  Problem p = three_rows();
  const std::string neighbour = run(p).row_bytes(0);
  p.set_hidden(1, 3, std::nanf(""));
  p.set_hidden(2, 5, kInfinity);
  for_each_way(p, [&](const Outputs& out, bool whole) {
    expect_nan_row(out, 1, whole);
    expect_nan_row(out, 2, whole);
    if (whole) {
      EXPECT_EQ(out.row_bytes(0), neighbour);
    }
  });
}

TEST(Special, AllLogitsMinusInfinity) {
  Problem p = problem_of_logits(std::vector<float>(300, -kInfinity), 5);
  p.top = 2;
  for_each_way(p, [](const Outputs& out, bool whole) {
    EXPECT_EQ(bits_of(out.lse_at(0)), kMinusInfinity);
    EXPECT_EQ(bits_of(out.entropy_at(0)), kNan);
    EXPECT_EQ(bits_of(out.logp_at(0)), kNan);
    EXPECT_EQ(out.rank_at(0), -1);
    EXPECT_EQ(bits_of(out.logit_at(0)), kMinusInfinity);
    if (whole) {
      EXPECT_EQ(out.top_id_at(0, 0), -1);
    }
  });
}

TEST(Special, ATargetAtMinusInfinity) {
  std::vector<float> logits(300, 1.0f);
  logits[5] = logits[7] = -kInfinity;
  const Problem p = problem_of_logits(logits, 7);
  for_each_way(p, [](const Outputs& out, bool) {
    EXPECT_EQ(bits_of(out.logp_at(0)), kMinusInfinity);
    EXPECT_EQ(out.rank_at(0), 299);
    EXPECT_NEAR(out.entropy_at(0), std::log(298.0), 1e-5);
  });
}

}  // namespace
}  // namespace isobit::linear_logp::test
