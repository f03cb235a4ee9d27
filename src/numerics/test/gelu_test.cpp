// gelu and gelu' against extended precision, every fp32 value or a sample (sweep.h). The bounds are the maxima measured
// over a dense sample, as the header states them.
#include "numerics/gelu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "numerics/test/sweep.h"

namespace isobit::numerics {
namespace {

using Extended = long double;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr Extended kPi = 3.14159265358979323846264338327950288L;

Extended exact_value(Gelu gelu, Extended a) {
  if (gelu == Gelu::kErf) return a * std::erfc(-a / std::sqrt(Extended{2})) / 2;
  return a / (1 + std::exp(-2 * std::sqrt(2 / kPi) * (a + 0.044715L * a * a * a)));
}

Extended exact_slope(Gelu gelu, Extended a) {
  if (gelu == Gelu::kErf) {
    return std::erfc(-a / std::sqrt(Extended{2})) / 2 + a * std::exp(-a * a / 2) / std::sqrt(2 * kPi);
  }
  const Extended scale = std::sqrt(2 / kPi);
  const Extended u = scale * (a + 0.044715L * a * a * a);
  const Extended complement = 1 / (1 + std::exp(2 * u));
  return (1 - complement) + 2 * a * complement * (1 - complement) * scale * (1 + 3 * 0.044715L * a * a);
}

// Error in units in the last place of the exact value; the last place of a subnormal is 2^-149.
double ulp_error(float got, Extended exact) {
  int exponent;
  std::frexp(exact, &exponent);
  return static_cast<double>(std::fabs(got - exact) / std::ldexp(Extended{1}, std::max(exponent - 24, -149)));
}

struct Worst {
  double near = 0.0;  // |a| <= 4
  double far = 0.0;   // results that are normal
};

// Walks [2^-20, 15] with both signs: below, gelu is a / 2 to all digits.
template <class Visit>
void walk(Visit visit) {
  for (uint32_t bits = float_bits(0x1p-20f); bits < float_bits(15.0f); bits += sweep_stride(911)) {
    visit(bits_float(bits));
    visit(-bits_float(bits));
  }
}

template <Gelu kGelu, GeluSequence kSequence>
Worst worst_value() {
  Worst worst;
  walk([&](float a) {
    const Extended exact = exact_value(kGelu, a);
    if (std::fabs(exact) < std::numeric_limits<float>::min()) return;
    const double error = ulp_error(gelu<kGelu, kSequence>(a), exact);
    worst.far = std::max(worst.far, error);
    if (std::fabs(a) <= 4.0f) worst.near = std::max(worst.near, error);
  });
  return worst;
}

template <Gelu kGelu, GeluSequence kSequence>
double worst_slope() {
  double worst = 0.0;
  walk([&](float a) {
    const float slope = gelu_and_slope<kGelu, kSequence>(a).slope;
    worst = std::max(worst, static_cast<double>(std::fabs(slope - exact_slope(kGelu, a))));
  });
  return worst;
}

void expect_within(const Worst& worst, double near, double far) {
  EXPECT_LE(worst.near, near);
  EXPECT_LE(worst.far, far);
}

TEST(Gelu, ErrorOfTheValue) {
  expect_within(worst_value<Gelu::kTanh, GeluSequence::kShort>(), 72, 180);
  expect_within(worst_value<Gelu::kTanh, GeluSequence::kLong>(), 9.5, 125);
  expect_within(worst_value<Gelu::kTanh, GeluSequence::kCompensated>(), 2.5, 6.5);
  expect_within(worst_value<Gelu::kErf, GeluSequence::kShort>(), 340, 2100);
  expect_within(worst_value<Gelu::kErf, GeluSequence::kLong>(), 16, 95);
  expect_within(worst_value<Gelu::kErf, GeluSequence::kCompensated>(), 5.3, 9.3);
}

// Of the coarse sequence: the largest error in units of |gelu(-|a|)|, which is not taken below 0.003 for |a| > 1.
template <Gelu kGelu>
double worst_coarse() {
  double worst = 0.0;
  walk([&](float a) {
    const Extended magnitude = std::fabs(a);
    const Extended floor = magnitude > 1 ? 0.003L : 0.0L;
    const Extended unit = std::max(-exact_value(kGelu, -magnitude), floor);
    const Extended error = std::fabs(gelu<kGelu, GeluSequence::kCoarse>(a) - exact_value(kGelu, a));
    worst = std::max(worst, static_cast<double>(error / unit));
  });
  return worst;
}

TEST(Gelu, ErrorOfTheCoarseValue) {
  EXPECT_LE(worst_coarse<Gelu::kTanh>(), 1.06e-3);
  EXPECT_LE(worst_coarse<Gelu::kErf>(), 2.25e-3);
}

TEST(Gelu, ErrorOfTheSlope) {
  EXPECT_LE((worst_slope<Gelu::kTanh, GeluSequence::kLong>()), 1.4e-7);
  EXPECT_LE((worst_slope<Gelu::kTanh, GeluSequence::kCompensated>()), 1.4e-7);
  EXPECT_LE((worst_slope<Gelu::kErf, GeluSequence::kLong>()), 3.5e-7);
  EXPECT_LE((worst_slope<Gelu::kErf, GeluSequence::kCompensated>()), 1.6e-7);
}

template <Gelu kGelu, GeluSequence kSequence>
void expect_special_values() {
  const auto bits = [](float a) { return float_bits(gelu<kGelu, kSequence>(a)); };
  EXPECT_EQ(bits(kInf), float_bits(kInf));
  EXPECT_EQ(bits(-kInf), float_bits(-0.0f));
  EXPECT_EQ(bits(0.0f), float_bits(0.0f));
  EXPECT_EQ(bits(-0.0f), float_bits(-0.0f));
  EXPECT_TRUE(std::isnan(gelu<kGelu, kSequence>(std::nanf(""))));
  EXPECT_EQ(bits(std::numeric_limits<float>::max()), float_bits(std::numeric_limits<float>::max()));
  EXPECT_EQ(bits(-std::numeric_limits<float>::max()), float_bits(-0.0f));
  for (const float a : {12.0f, 13.24f, 15.0f, 1e10f}) EXPECT_EQ(bits(a), float_bits(a));
  // From the limit on the weight is +0, and one step before it is not negative and not NaN.
  constexpr bool kIsCoarse = kSequence == GeluSequence::kCoarse;
  const float limit = kIsCoarse ? 5.0f : kGelu == Gelu::kTanh ? 10.75f : 14.625f;
  EXPECT_EQ(bits(-limit), float_bits(-0.0f));
  for (uint32_t b = float_bits(limit * 0.9f); b <= float_bits(limit); ++b) {
    const float x = gelu<kGelu, kSequence>(-bits_float(b));
    ASSERT_TRUE(x <= 0.0f && x > (kIsCoarse ? -3e-5f : -1e-20f)) << bits_float(b);
  }
}

TEST(Gelu, SpecialValues) {
  expect_special_values<Gelu::kTanh, GeluSequence::kCoarse>();
  expect_special_values<Gelu::kErf, GeluSequence::kCoarse>();
  expect_special_values<Gelu::kTanh, GeluSequence::kShort>();
  expect_special_values<Gelu::kTanh, GeluSequence::kLong>();
  expect_special_values<Gelu::kTanh, GeluSequence::kCompensated>();
  expect_special_values<Gelu::kErf, GeluSequence::kShort>();
  expect_special_values<Gelu::kErf, GeluSequence::kLong>();
  expect_special_values<Gelu::kErf, GeluSequence::kCompensated>();
}

TEST(Gelu, SpecialSlopes) {
  EXPECT_EQ((gelu_and_slope<Gelu::kTanh, GeluSequence::kLong>(kInf).slope), 1.0f);
  EXPECT_EQ((gelu_and_slope<Gelu::kErf, GeluSequence::kLong>(kInf).slope), 1.0f);
  EXPECT_EQ((gelu_and_slope<Gelu::kTanh, GeluSequence::kLong>(-kInf).slope), 0.0f);
  EXPECT_EQ((gelu_and_slope<Gelu::kErf, GeluSequence::kLong>(-kInf).slope), 0.0f);
  EXPECT_EQ((gelu_and_slope<Gelu::kTanh, GeluSequence::kLong>(0.0f).slope), 0.5f);
  EXPECT_EQ((gelu_and_slope<Gelu::kErf, GeluSequence::kLong>(-0.0f).slope), 0.5f);
  EXPECT_TRUE(std::isnan((gelu_and_slope<Gelu::kErf, GeluSequence::kLong>(std::nanf("")).slope)));
}

}  // namespace
}  // namespace isobit::numerics
