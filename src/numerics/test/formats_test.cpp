// Conversions against the definition of each format: every code to fp32, and fp32 to codes on every bit pattern or a
// sample that holds both ends of each code's interval (see sweep.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/fp16.h"
#include "numerics/test/sweep.h"

namespace isobit::numerics {
namespace {

// The definition of a format: the codes 0 .. largest are the finite values that are not negative, ascending.
// above: the code of a value that rounds beyond the largest (its infinity, or the largest itself).
// nan_code: what a NaN becomes.
struct Bf16Rule {
  static constexpr int kMantissaBits = 7, kBias = 127, kCodeBits = 16;
  static constexpr uint32_t kLargest = 0x7F7F, kAbove = 0x7F80, kNanCode = 0x7FFF;
  static uint32_t from(float x) { return bf16_from_float(x); }
  static float to(uint32_t code) { return bf16_to_float(static_cast<uint16_t>(code)); }
};
struct Fp16Rule {
  static constexpr int kMantissaBits = 10, kBias = 15, kCodeBits = 16;
  static constexpr uint32_t kLargest = 0x7BFF, kAbove = 0x7C00, kNanCode = 0x7FFF;
  static uint32_t from(float x) { return fp16_from_float(x); }
  static float to(uint32_t code) { return fp16_to_float(static_cast<uint16_t>(code)); }
};
struct E4m3Rule {
  static constexpr int kMantissaBits = 3, kBias = 7, kCodeBits = 8;
  static constexpr uint32_t kLargest = 0x7E, kAbove = 0x7E, kNanCode = 0x7F;
  static uint32_t from(float x) { return e4m3_from_float(x); }
  static float to(uint32_t code) { return e4m3_to_float(static_cast<uint8_t>(code)); }
};
struct E2m1Rule {
  static constexpr int kMantissaBits = 1, kBias = 1, kCodeBits = 4;
  static constexpr uint32_t kLargest = 7, kAbove = 7, kNanCode = 7;
  static uint32_t from(float x) { return e2m1_from_float(x); }
  static float to(uint32_t code) { return e2m1_to_float(static_cast<uint8_t>(code)); }
};

template <class Rule>
double value(uint32_t code) {
  const int field = static_cast<int>(code >> Rule::kMantissaBits);
  const int mantissa = static_cast<int>(code & ((1u << Rule::kMantissaBits) - 1));
  const int significand = field == 0 ? mantissa : mantissa + (1 << Rule::kMantissaBits);
  return std::ldexp(significand, std::max(field, 1) - Rule::kBias - Rule::kMantissaBits);
}

// The last fp32 pattern that rounds to the code: the midpoint to the next code when the code is even, else the pattern
// before it.
template <class Rule>
uint32_t last_pattern(uint32_t code) {
  const double midpoint = (value<Rule>(code) + value<Rule>(code + 1)) / 2;
  const float exact = static_cast<float>(midpoint);
  EXPECT_EQ(static_cast<double>(exact), midpoint);
  return float_bits(exact) - (code & 1u);
}

// The number of patterns first .. last, and of their negatives, that do not give the code.
template <class Rule>
uint64_t count_wrong(uint32_t first, uint32_t last, uint32_t code, uint64_t stride) {
  constexpr uint32_t kSign = 1u << (Rule::kCodeBits - 1);
  uint64_t wrong = 0;
  const auto check = [&](uint32_t bits) {
    wrong += Rule::from(bits_float(bits)) != code;
    wrong += Rule::from(bits_float(bits | 0x80000000u)) != (code | kSign);
  };
  for (uint64_t bits = first; bits <= last; bits += stride) check(static_cast<uint32_t>(bits));
  check(last);
  return wrong;
}

template <class Rule>
class FormatTest : public testing::Test {};
using Rules = testing::Types<Bf16Rule, Fp16Rule, E4m3Rule, E2m1Rule>;
TYPED_TEST_SUITE(FormatTest, Rules);

TYPED_TEST(FormatTest, EveryCodeHasItsValue) {
  constexpr uint32_t kSign = 1u << (TypeParam::kCodeBits - 1);
  for (uint32_t code = 0; code <= TypeParam::kLargest; ++code) {
    const float expected = static_cast<float>(value<TypeParam>(code));
    ASSERT_EQ(float_bits(TypeParam::to(code)), float_bits(expected)) << code;
    ASSERT_EQ(float_bits(TypeParam::to(code | kSign)), float_bits(expected) | 0x80000000u) << code;
    ASSERT_EQ(TypeParam::from(expected), code);
    ASSERT_EQ(TypeParam::from(-expected), code | kSign);
  }
}

TYPED_TEST(FormatTest, EveryValueGoesToTheNearestCode) {
  const uint64_t stride = sweep_stride(251);
  uint32_t first = 0;
  for (uint32_t code = 0; code < TypeParam::kLargest; ++code) {
    const uint32_t last = last_pattern<TypeParam>(code);
    ASSERT_EQ(count_wrong<TypeParam>(first, last, code, stride), 0u) << code;
    first = last + 1;
  }
  if (TypeParam::kAbove != TypeParam::kLargest) {
    const uint32_t last = last_pattern<TypeParam>(TypeParam::kLargest);
    ASSERT_EQ(count_wrong<TypeParam>(first, last, TypeParam::kLargest, stride), 0u);
    first = last + 1;
  }
  EXPECT_EQ(count_wrong<TypeParam>(first, 0x7F800000u, TypeParam::kAbove, stride), 0u);
}

TYPED_TEST(FormatTest, EveryNanGivesTheOneNanCode) {
  uint64_t wrong = 0;
  for (uint64_t bits = 0x7F800001u; bits <= 0x7FFFFFFFu; bits += sweep_stride(251)) {
    wrong += TypeParam::from(bits_float(static_cast<uint32_t>(bits))) != TypeParam::kNanCode;
    wrong += TypeParam::from(bits_float(static_cast<uint32_t>(bits) | 0x80000000u)) != TypeParam::kNanCode;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(SpecialCodes, InfinitiesAndNansToFloat) {
  for (const uint32_t sign : {0u, 0x8000u}) {
    EXPECT_EQ(float_bits(bf16_to_float(static_cast<uint16_t>(0x7F80 | sign))), 0x7F800000u | (sign << 16));
    EXPECT_EQ(float_bits(fp16_to_float(static_cast<uint16_t>(0x7C00 | sign))), 0x7F800000u | (sign << 16));
    for (uint32_t code = 0x7F81; code <= 0x7FFF; ++code) {
      EXPECT_EQ(float_bits(bf16_to_float(static_cast<uint16_t>(code | sign))), (code | sign) << 16);
    }
    for (uint32_t code = 0x7C01; code <= 0x7FFF; ++code) {
      EXPECT_EQ(float_bits(fp16_to_float(static_cast<uint16_t>(code | sign))), kNanBits);
    }
  }
  EXPECT_EQ(float_bits(e4m3_to_float(0x7F)), kNanBits);
  EXPECT_EQ(float_bits(e4m3_to_float(0xFF)), kNanBits);
}

TEST(E2m1Pair, LowNibbleIsTheEvenElement) {
  EXPECT_EQ(e2m1_pack(e2m1_from_float(1.0f), e2m1_from_float(-6.0f)), 0xF2);
  for (int pair = 0; pair < 256; ++pair) {
    const auto byte = static_cast<uint8_t>(pair);
    EXPECT_EQ(e2m1_unpack_even(byte), pair % 16);
    EXPECT_EQ(e2m1_unpack_odd(byte), pair / 16);
    EXPECT_EQ(e2m1_pack(e2m1_unpack_even(byte), e2m1_unpack_odd(byte)), byte);
    EXPECT_EQ(float_bits(e2m1_to_float(byte)), float_bits(e2m1_to_float(byte & 15)));
  }
}

}  // namespace
}  // namespace isobit::numerics
