// Units and merges: the definition's own properties, and the vectorised loops against it, bit for bit.
#include "ops/linear_logp/unit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ops/linear_logp/cpu/unit_simd.h"
#include "ops/linear_logp/finish.h"
#include "ops/linear_logp/logit.h"

namespace isobit::linear_logp {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

bool equal(const Node& a, const Node& b) {
  return a.r == b.r &&
         numerics::float_bits(numerics::canonical_nan(a.s)) == numerics::float_bits(numerics::canonical_nan(b.s)) &&
         numerics::float_bits(numerics::canonical_nan(a.q)) == numerics::float_bits(numerics::canonical_nan(b.q));
}

// Logits of many kinds: plain units, units around the plain limit, large, huge and of every bit pattern.
std::vector<float> random_unit(std::mt19937_64* random, int kind) {
  std::normal_distribution<float> normal;
  const float scales[] = {1.0f, 20.0f, 60.0f, 200.0f, 1e4f, 0x1p20f, 0x1p21f, 0x1p28f, 1e38f};
  std::vector<float> z(64);
  for (float& x : z) {
    if (kind < 9) {
      x = normal(*random) * scales[kind];
    } else if (kind < 18) {
      x = (*random)() % 3 == 0 ? -kInfinity : normal(*random) * scales[kind - 9];
    } else if (kind == 18) {
      x = std::nextafter(60.0f, (*random)() % 2 == 0 ? 0.0f : 100.0f) * ((*random)() % 2 == 0 ? 1.0f : -1.0f);
    } else {
      x = numerics::bits_float(static_cast<uint32_t>((*random)()));
    }
  }
  if (kind == 20) z[(*random)() % 64] = kNotANumber;
  if (kind == 21) z[(*random)() % 64] = kInfinity;
  if (kind == 22) z.assign(64, -kInfinity);
  return z;
}

TEST(Unit, VectorisedLoopsGiveTheBitsOfTheDefinition) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 23 * 2000; ++i) {
    const std::vector<float> z = random_unit(&random, i % 23);
    const int count = i % 5 == 0 ? static_cast<int>(random() % 64) + 1 : 64;
    ASSERT_TRUE(equal(cpu::reduce_unit_simd<true>(z.data(), count), reduce_unit<true>(z.data(), count))) << i % 23;
    ASSERT_TRUE(equal(cpu::reduce_unit_simd<false>(z.data(), count), reduce_unit<false>(z.data(), count))) << i % 23;
  }
}

TEST(Unit, FinishedLogitsHaveTheBitsOfTheDefinition) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 23 * 200; ++i) {
    const std::vector<float> t = random_unit(&random, i % 23);
    const std::vector<float> bias = random_unit(&random, static_cast<int>(random() % 23));
    for (const float softcap : {0.0f, 30.0f, 1e-3f}) {
      for (const float temperature : {1.0f, 0.7f, 1e-30f, 0.0f, kNotANumber}) {
        std::vector<float> z = t;
        cpu::finish_logits(z.data(), 64, i % 2 == 0 ? bias.data() : nullptr, softcap, temperature);
        for (int v = 0; v < 64; ++v) {
          const float expected = finish_logit(t[v], i % 2 == 0 ? &bias[v] : nullptr, softcap, temperature);
          ASSERT_EQ(numerics::float_bits(numerics::canonical_nan(z[v])),
                    numerics::float_bits(numerics::canonical_nan(expected)));
        }
      }
    }
  }
}

TEST(Unit, CountsWhatRanksBefore) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::vector<float> z(64);
    for (float& x : z) x = static_cast<float>(static_cast<int>(random() % 5));
    const auto target = static_cast<int64_t>(random() % 128);
    const auto target_z = static_cast<float>(random() % 5);
    int32_t expected = 0;
    for (int v = 0; v < 64; ++v) expected += ranks_before(z[v], 32 + v, target_z, target) ? 1 : 0;
    ASSERT_EQ(cpu::count_before(z.data(), 64, 32, target_z, target), expected);
  }
}

TEST(Unit, PlainUnitsHaveReferenceZero) {
  std::vector<float> z(64, 60.0f);
  EXPECT_EQ(reduce_unit<true>(z.data(), 64).r, 0);
  z[5] = std::nextafter(60.0f, 61.0f);
  EXPECT_EQ(reduce_unit<true>(z.data(), 64).r, 87);
  z.assign(64, -60.0f);
  EXPECT_EQ(reduce_unit<true>(z.data(), 64).r, 0);
  z[63] = -kInfinity;
  EXPECT_EQ(reduce_unit<true>(z.data(), 64).r, -87);
}

TEST(Unit, SumsInTheTreesOrder) {
  // A term in [2^24, 2^25) with an even mantissa: adding 1 changes nothing, adding 2 does. So two terms of 1 count if
  // they meet each other before they meet the large one.
  const auto sum_of = [](float large, std::vector<int> ones) {
    std::vector<float> z(64, -60.0f);  // terms too small to count
    z[0] = large;
    for (const int id : ones) z[static_cast<size_t>(id)] = 0.0f;
    return reduce_unit<false>(z.data(), 64).s;
  };
  float large = 16.7f;
  while (numerics::float_bits(sum_of(large, {})) % 2 != 0) large = std::nextafter(large, 17.0f);
  const float alone = sum_of(large, {});
  const int bits[] = {5, 0, 3, 4, 1, 2};
  for (int early = 0; early < 6; ++early) {
    for (int late = early + 1; late < 6; ++late) {
      const int a = 1 << bits[early];
      const int b = 1 << bits[late];
      EXPECT_GT(sum_of(large, {b, b | a}), alone) << early << " " << late;
      EXPECT_EQ(sum_of(large, {a, b}), alone) << early << " " << late;
    }
  }
}

TEST(Merge, TheIdentityReturnsTheOtherOperand) {
  const Node node = {-7, 1.5f, -0.0f};
  EXPECT_TRUE(equal(merge<true>(identity_node(), node), node));
  EXPECT_TRUE(equal(merge<true>(node, identity_node()), node));
  EXPECT_TRUE(is_identity(merge<true>(identity_node(), identity_node())));
}

TEST(Merge, ScalesByPowersOfTwoWithGradualUnderflow) {
  const Node top = {0, 1.0f, 0.0f};
  EXPECT_EQ(merge<false>(top, {-24, 1.0f, 0.0f}).s, 1.0f);  // ties to even
  EXPECT_EQ(merge<false>(top, {-23, 1.0f, 0.0f}).s, 1.0f + 0x1p-23f);
  const Node nothing = {0, 0.0f, 0.0f};
  EXPECT_EQ(merge<false>(nothing, {-149, 1.0f, 0.0f}).s, 0x1p-149f);
  EXPECT_EQ(merge<false>(nothing, {-150, 1.9f, 0.0f}).s, 0.0f);
  EXPECT_EQ(merge<false>({-150, 1.9f, 0.0f}, nothing).s, 0.0f);
}

TEST(Merge, NanSurvivesAnyNeighbour) {
  for (const int32_t r : {-387000000, -1000, 0, 150, 1000, 387000000}) {
    const Node node = {r, 1.0f, 1.0f};
    EXPECT_TRUE(numerics::is_nan(merge<true>(nan_node(), node).s));
    EXPECT_TRUE(numerics::is_nan(merge<true>(node, nan_node()).s));
    EXPECT_TRUE(numerics::is_nan(merge<true>(node, nan_node()).q));
  }
}

TEST(Merge, WeightedSumFollowsTheReference) {
  const Node low = {-3, 2.0f, 1.0f};
  const Node high = {0, 0.0f, 0.0f};
  // 1 + 2 (-3 ln 2), scaled by 2^-3.
  EXPECT_NEAR(merge<true>(low, high).q, (1.0 - 6.0 * std::log(2.0)) / 8.0, 1e-7);
}

}  // namespace
}  // namespace isobit::linear_logp
