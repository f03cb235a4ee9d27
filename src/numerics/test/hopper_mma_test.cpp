// The tensor-core model against what an H200 computed for single steps, and against hand-made cases for each rule.
#include "numerics/hopper_mma.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace isobit::numerics {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

template <class T>
bool read_array(std::FILE* file, size_t size, std::vector<T>* out) {
  out->resize(size);
  return std::fread(out->data(), sizeof(T), size, file) == size;
}

template <class Format>
void compare_with_golden_steps(const std::string& name) {
  const std::string path = std::string(ISOBIT_SOURCE_DIR) + "/src/numerics/test/golden/" + name;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  ASSERT_NE(file, nullptr) << path;
  std::vector<int32_t> count;
  std::vector<uint16_t> a, b;
  std::vector<float> c, d;
  const size_t tiles = read_array(file, 1, &count) ? static_cast<size_t>(count[0]) : 0;
  const bool read = read_array(file, tiles * 256, &a) && read_array(file, tiles * 128, &b) &&
                    read_array(file, tiles * 128, &c) && read_array(file, tiles * 128, &d) && std::fgetc(file) == EOF;
  std::fclose(file);
  ASSERT_TRUE(read) << path;
  ASSERT_EQ(tiles, 36u);
  for (size_t i = 0; i < d.size(); ++i) {
    const size_t tile = i / 128;
    const size_t row = i % 128 / 8;
    const size_t column = i % 8;
    const float result = hopper_mma_step<Format>(c[i], &a[tile * 256 + row * 16], &b[tile * 128 + column * 16]);
    ASSERT_EQ(float_bits(result), float_bits(d[i])) << "tile " << tile << " row " << row << " column " << column;
  }
}

TEST(HopperMma, StepsOfTheH200InBf16) { compare_with_golden_steps<Bf16>("step_bf16.bin"); }
TEST(HopperMma, StepsOfTheH200InFp16) { compare_with_golden_steps<Fp16>("step_fp16.bin"); }

// One step over the given products, the rest +0.
template <class Format>
uint32_t step(float c, std::initializer_list<std::pair<float, float>> products) {
  uint16_t a[16] = {};
  uint16_t b[16] = {};
  int i = 0;
  for (const auto& [x, y] : products) {
    a[i] = Format::from_float(x);
    b[i] = Format::from_float(y);
    ++i;
  }
  return float_bits(hopper_mma_step<Format>(c, a, b));
}

template <class Format>
class HopperMmaTest : public testing::Test {};
using Formats = testing::Types<Bf16, Fp16>;
TYPED_TEST_SUITE(HopperMmaTest, Formats);

TYPED_TEST(HopperMmaTest, EveryZeroResultIsPlusZero) {
  EXPECT_EQ(step<TypeParam>(-0.0f, {}), 0u);
  EXPECT_EQ(step<TypeParam>(-0.0f, {{-1.0f, 0.0f}, {0.0f, -2.0f}}), 0u);
  EXPECT_EQ(step<TypeParam>(-1.0f, {{1.0f, 1.0f}}), 0u);
  EXPECT_EQ(step<TypeParam>(0.0f, {{1.5f, -2.0f}, {3.0f, 1.0f}}), 0u);
}

TYPED_TEST(HopperMmaTest, NansAndInfinities) {
  EXPECT_EQ(step<TypeParam>(kNan, {}), kNanBits);
  EXPECT_EQ(step<TypeParam>(bits_float(0xFF800001u), {}), kNanBits);
  EXPECT_EQ(step<TypeParam>(0.0f, {{kNan, 0.0f}}), kNanBits);
  EXPECT_EQ(step<TypeParam>(kInf, {{1.0f, kNan}}), kNanBits);
  EXPECT_EQ(step<TypeParam>(0.0f, {{kInf, 0.0f}}), kNanBits);
  EXPECT_EQ(step<TypeParam>(0.0f, {{-0.0f, -kInf}}), kNanBits);
  EXPECT_EQ(step<TypeParam>(0.0f, {{kInf, 1.0f}, {kInf, -1.0f}}), kNanBits);
  EXPECT_EQ(step<TypeParam>(-kInf, {{-kInf, -1.0f}}), kNanBits);
  EXPECT_EQ(step<TypeParam>(-kInf, {{1.0f, 1.0f}}), float_bits(-kInf));
  EXPECT_EQ(step<TypeParam>(kMax, {{kInf, -1.0f}}), float_bits(-kInf));
  EXPECT_EQ(step<TypeParam>(0.0f, {{-kInf, -kInf}}), float_bits(kInf));
}

TYPED_TEST(HopperMmaTest, OnlyAFinalOverflowIsAnInfinity) {
  EXPECT_EQ(step<TypeParam>(kMax, {{1.0f, 1.0f}}), float_bits(kMax));
  EXPECT_EQ(step<TypeParam>(-kMax, {{1.0f, -1.0f}}), float_bits(-kMax));
  // 2^104 is one unit in the last place of the largest value. fp16 reaches it with terms of 2^30, which are cut off.
  if (std::is_same_v<TypeParam, Bf16>) {
    EXPECT_EQ(step<TypeParam>(kMax, {{0x1p104f, 1.0f}}), float_bits(kInf));
    EXPECT_EQ(step<TypeParam>(-kMax, {{0x1p52f, -0x1p52f}}), float_bits(-kInf));
    EXPECT_EQ(step<TypeParam>(kMax, {{0x1p103f, 1.0f}}), float_bits(kMax));
  }
}

TEST(HopperMmaBf16, TermsBeyondTheRangeThatCancelAreExact) {
  constexpr float kHuge = 0x1.fep127f;
  EXPECT_EQ(step<Bf16>(0.0f, {{kHuge, kHuge}, {-kHuge, kHuge}}), 0u);
  EXPECT_EQ(step<Bf16>(0.0f, {{kHuge, kHuge}}), float_bits(kInf));
  EXPECT_EQ(step<Bf16>(0.0f, {{kHuge, -kHuge}}), float_bits(-kInf));
  EXPECT_EQ(step<Bf16>(-3.4e38f, {{kHuge, 2.0f}}), float_bits(static_cast<float>(2.0 * kHuge - double{3.4e38f})));
  EXPECT_EQ(step<Bf16>(kMax, {{kHuge, 2.0f}, {-kHuge, 2.0f}}), float_bits(kMax - 0.0f));
}

TEST(HopperMmaBf16, TheSmallestProducts) {
  EXPECT_EQ(step<Bf16>(0.0f, {{0x1p-75f, 0x1p-74f}}), 1u);
  EXPECT_EQ(step<Bf16>(0.0f, {{0x1p-75f, 0x1p-75f}}), 0u);
  EXPECT_EQ(step<Bf16>(0.0f, {{0x1p-75f, -0x1p-75f}}), 0u);
  const std::pair<float, float> tiny{0x1p-75f, 0x1p-75f};
  EXPECT_EQ(step<Bf16>(
                0.0f, {tiny, tiny, tiny, tiny, tiny, tiny, tiny, tiny, tiny, tiny, tiny, tiny, tiny, tiny, tiny, tiny}),
            8u);
  EXPECT_EQ(step<Bf16>(0x1p-149f, {{0x1p-133f, 1.0f}}), float_bits(0x1p-133f + 0x1p-149f));
}

TYPED_TEST(HopperMmaTest, TermsAreCutAt25BitsBelowTheLargestExponent) {
  constexpr float kUnit = 0x1p-13f;
  // Two terms of 2^-25 count beside 1, although each alone is below the last place of the result.
  EXPECT_EQ(step<TypeParam>(1.0f, {{0x1p-12f, kUnit}, {0x1p-12f, kUnit}, {0x1p-12f, kUnit}, {0x1p-12f, kUnit}}),
            float_bits(1.0f + 0x1p-23f));
  // Terms of 2^-26 do not, however many.
  EXPECT_EQ(step<TypeParam>(1.0f, {{kUnit, kUnit},
                                   {kUnit, kUnit},
                                   {kUnit, kUnit},
                                   {kUnit, kUnit},
                                   {kUnit, kUnit},
                                   {kUnit, kUnit},
                                   {kUnit, kUnit},
                                   {kUnit, kUnit}}),
            float_bits(1.0f));
  // Toward zero for negative terms too: -1.5 * 2^-25 counts as -2^-25.
  EXPECT_EQ(step<TypeParam>(1.0f, {{-1.5f * 0x1p-12f, kUnit}, {-1.5f * 0x1p-12f, kUnit}}), float_bits(1.0f - 0x1p-24f));
}

TYPED_TEST(HopperMmaTest, AProductsExponentIsTheSumOfItsFactors) {
  // 1.5 * 1.5 = 2.25 has exponent 0 by the rule, so 2^-25 is still kept: four of them reach the last place of 2.25 only
  // together with the sum's two low bits.
  constexpr float kUnit = 0x1p-12f;
  const std::pair<float, float> small{kUnit, 0x1p-13f};
  EXPECT_EQ(step<TypeParam>(0.0f, {{1.5f, 1.5f}, small, small, small, small, small, small, small, small}),
            float_bits(2.25f + 0x1p-22f));
  EXPECT_EQ(step<TypeParam>(0.0f, {{1.5f, 1.5f}, small, small, small, small, small, small, small}), float_bits(2.25f));
}

TYPED_TEST(HopperMmaTest, TheSumIsRoundedTowardZero) {
  EXPECT_EQ(step<TypeParam>(1.0f, {{0x1.8p-12f, 0x1p-12f}}), float_bits(1.0f));
  EXPECT_EQ(step<TypeParam>(-1.0f, {{-0x1.8p-12f, 0x1p-12f}}), float_bits(-1.0f));
  EXPECT_EQ(step<TypeParam>(1.0f, {{-0x1p-12f, 0x1p-13f}}), float_bits(1.0f - 0x1p-24f));
}

TYPED_TEST(HopperMmaTest, AChainPadsWithPlusZero) {
  std::vector<uint16_t> a(48), b(48);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = TypeParam::from_float(0.37f * static_cast<float>(i) - 5.0f);
    b[i] = TypeParam::from_float(1.0f / static_cast<float>(i + 1));
  }
  EXPECT_EQ(float_bits(hopper_dot<TypeParam>(a.data(), b.data(), 0)), 0u);
  for (int64_t k = 1; k <= 48; ++k) {
    std::vector<uint16_t> padded_a(48), padded_b(48);
    std::copy_n(a.begin(), k, padded_a.begin());
    std::copy_n(b.begin(), k, padded_b.begin());
    float expected = 0.0f;
    for (int64_t group = 0; group < k; group += 16) {
      expected = hopper_mma_step<TypeParam>(expected, &padded_a[static_cast<size_t>(group)],
                                            &padded_b[static_cast<size_t>(group)]);
    }
    ASSERT_EQ(float_bits(hopper_dot<TypeParam>(a.data(), b.data(), k)), float_bits(expected)) << k;
    ASSERT_EQ(float_bits(hopper_chain<TypeParam>(2.5f, a.data() + 16, b.data() + 16, k - 16)),
              float_bits(hopper_chain<TypeParam>(2.5f, padded_a.data() + 16, padded_b.data() + 16, 32)))
        << k;
  }
}

}  // namespace
}  // namespace isobit::numerics
