// Bit helpers and the IEEE operations.
#include "numerics/ieee.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace isobit::numerics {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Bits, CanonicalNanReplacesNansOnly) {
  for (const uint32_t nan : {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu, 0xFF800001u, 0xFFFFFFFFu}) {
    EXPECT_TRUE(is_nan(bits_float(nan)));
    EXPECT_EQ(float_bits(canonical_nan(bits_float(nan))), kNanBits);
  }
  for (const uint32_t other : {0x00000000u, 0x80000000u, 0x7F800000u, 0xFF800000u, 0x00000001u, 0x7F7FFFFFu}) {
    EXPECT_FALSE(is_nan(bits_float(other)));
    EXPECT_EQ(float_bits(canonical_nan(bits_float(other))), other);
  }
}

TEST(Bits, Pow2IsExact) {
  for (int k = -400; k <= 400; ++k) {
    const float expected = k < -149 ? 0.0f : k > 127 ? kInf : static_cast<float>(std::ldexp(1.0, k));
    EXPECT_EQ(float_bits(pow2(k)), float_bits(expected)) << k;
  }
  EXPECT_EQ(float_bits(pow2(std::numeric_limits<int>::min())), 0u);
  EXPECT_EQ(pow2(std::numeric_limits<int>::max()), kInf);
}

TEST(Bits, SignAndMagnitude) {
  EXPECT_EQ(float_bits(magnitude(-0.0f)), 0u);
  EXPECT_EQ(magnitude(-kInf), kInf);
  EXPECT_EQ(float_bits(with_sign(0.0f, -1.0f)), 0x80000000u);
  EXPECT_EQ(with_sign(-2.0f, 0.0f), 2.0f);
}

TEST(Ieee, FmaRoundsOnce) {
  // The exact value is 2^-24 + 2^-48: a product rounded first would lose the low part and give 2^-24 - ... = 0.
  const float x = 1.0f + 0x1p-12f;
  EXPECT_EQ(fma_rn(x, x, -(1.0f + 0x1p-11f)), 0x1p-24f);
  EXPECT_EQ(sub_rn(mul_rn(x, x), 1.0f + 0x1p-11f), 0.0f);
}

TEST(Ieee, RintGoesToEven) {
  EXPECT_EQ(rint_rn(0.5f), 0.0f);
  EXPECT_EQ(rint_rn(1.5f), 2.0f);
  EXPECT_EQ(rint_rn(2.5f), 2.0f);
  EXPECT_EQ(float_bits(rint_rn(-0.25f)), 0x80000000u);
  EXPECT_EQ(rint_rn(0x1p30f), 0x1p30f);
}

TEST(Ieee, SubnormalsAreNotFlushed) {
  EXPECT_EQ(float_bits(mul_rn(0x1p-126f, 0.5f)), 0x00400000u);
  EXPECT_EQ(float_bits(add_rn(0x1p-149f, 0x1p-149f)), 2u);
  EXPECT_EQ(float_bits(div_rn(0x1p-140f, 2.0f)), float_bits(0x1p-141f));
}

TEST(Ieee, MinimumAndMaximumOrderZerosAndPropagateNan) {
  EXPECT_EQ(float_bits(minimum(0.0f, -0.0f)), 0x80000000u);
  EXPECT_EQ(float_bits(minimum(-0.0f, 0.0f)), 0x80000000u);
  EXPECT_EQ(float_bits(maximum(0.0f, -0.0f)), 0u);
  EXPECT_EQ(float_bits(maximum(-0.0f, 0.0f)), 0u);
  EXPECT_EQ(float_bits(maximum(-0.0f, -0.0f)), 0x80000000u);
  EXPECT_EQ(minimum(-kInf, 1.0f), -kInf);
  EXPECT_EQ(maximum(-3.0f, -2.0f), -2.0f);
  EXPECT_EQ(minimum(-3.0f, -3.0f), -3.0f);
  EXPECT_EQ(maximum(-3.0f, -3.0f), -3.0f);
  const float nan = bits_float(0xFFC00001u);
  for (const float other : {0.0f, kInf, -kInf, nan}) {
    EXPECT_EQ(float_bits(minimum(nan, other)), kNanBits);
    EXPECT_EQ(float_bits(minimum(other, nan)), kNanBits);
    EXPECT_EQ(float_bits(maximum(nan, other)), kNanBits);
    EXPECT_EQ(float_bits(maximum(other, nan)), kNanBits);
  }
}

}  // namespace
}  // namespace isobit::numerics
