// A shared divisor gives the quotients of IEEE division.
#include "numerics/divisor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace isobit::numerics {
namespace {

void expect_equal(float t, const Divisor& divisor) {
  ASSERT_EQ(float_bits(divisor.divide(t)), float_bits(div_rn(t, divisor.value)))
      << std::hexfloat << t << " / " << divisor.value;
}

TEST(Divisor, RandomBits) {
  std::mt19937_64 random(1);
  const auto pick = [&](int low, int high) {  // a random significand and exponent
    const int e = low + static_cast<int>(random() % static_cast<uint64_t>(high - low));
    return std::ldexp(1.0f + static_cast<float>(random() & 0x7FFFFF) * 0x1p-23f, e);
  };
  for (int i = 0; i < 2000; ++i) {
    const Divisor divisor(pick(-30, 30));
    ASSERT_TRUE(divisor.usable());
    for (int j = 0; j < 2000; ++j) expect_equal(pick(-90, 90) * (random() % 2 != 0 ? 1.0f : -1.0f), divisor);
  }
}

// All significands of the dividend for divisors whose reciprocals round worst: all ones, just above one, and such.
TEST(Divisor, EverySignificand) {
  for (const uint32_t significand : {0u, 1u, 2u, 0x7FFFFFu, 0x7FFFFEu, 0x400000u, 0x333333u, 0x19999Au}) {
    const Divisor divisor(bits_float(0x3F800000u | significand));
    for (uint32_t t = 0; t < 0x800000u; ++t) expect_equal(bits_float(0x40000000u | t), divisor);
  }
}

TEST(Divisor, Limits) {
  for (const float value : {0x1p-30f, 0x1p30f, 0.7f, 1.0f, 3.0f}) {
    for (const float t : {0.0f, 0x1p-90f, -0x1p-90f, 0x1p90f, 0x1.fffffep89f}) expect_equal(t, Divisor(value));
  }
  for (const float value : {0.0f, -1.0f, 0x1p-31f, 0x1p31f, float(NAN), float(INFINITY)}) {
    EXPECT_FALSE(Divisor(value).usable()) << value;
  }
}

}  // namespace
}  // namespace isobit::numerics
