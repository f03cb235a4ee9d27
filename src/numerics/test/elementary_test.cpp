// exp2, log, tanh and erf against the double functions of the C library: every fp32 value or a sample (see sweep.h).
// The bounds are the maxima measured over every value, as the headers state them.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "numerics/erf.h"
#include "numerics/exp2.h"
#include "numerics/log.h"
#include "numerics/tanh.h"
#include "numerics/test/sweep.h"

namespace isobit::numerics {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// |result - exact| in units in the last place of fp32 in the exact value's binade.
double ulp_error(float result, double exact) {
  const int64_t exponent = static_cast<int64_t>(std::bit_cast<uint64_t>(exact) >> 52 & 0x7FF) - 1023;
  const int64_t last_place = std::max<int64_t>(exponent - 23, -149);
  const double places_per_unit = std::bit_cast<double>(static_cast<uint64_t>(1023 - last_place) << 52);
  return std::fabs(result - exact) * places_per_unit;
}

struct Sweep {
  double worst = 0.0;
  float worst_at = 0.0f;
  uint64_t wrong_special = 0;  // a NaN, infinity or sign that the exact value does not have, or the reverse
};

// Walks first .. last (bit patterns).
template <class Function, class Exact>
Sweep sweep(Function function, Exact exact, uint32_t first = 0, uint32_t last = 0xFFFFFFFFu) {
  Sweep result;
  for (uint64_t bits = first; bits <= last; bits += sweep_stride(1009)) {
    const float x = bits_float(static_cast<uint32_t>(bits));
    const float y = function(x);
    const double reference = exact(static_cast<double>(x));
    const float rounded = static_cast<float>(reference);
    if (std::isnan(reference)) {
      result.wrong_special += float_bits(y) != kNanBits;
    } else if (std::isinf(rounded) || std::isinf(y)) {
      result.wrong_special += y != rounded;
    } else {
      result.wrong_special += std::signbit(y) != std::signbit(reference) && reference != 0.0;
      const double error = ulp_error(y, reference);
      if (error > result.worst) result = {error, x, result.wrong_special};
    }
  }
  std::printf("  max %.4f ulp at %a (%08x)\n", result.worst, static_cast<double>(result.worst_at),
              float_bits(result.worst_at));
  return result;
}

TEST(Exp2, WithinItsStatedError) {
  const Sweep s = sweep([](float x) { return exp2(x); }, [](double x) { return std::exp2(x); });
  EXPECT_EQ(s.wrong_special, 0u);
  EXPECT_LE(s.worst, kExp2MaxUlp) << s.worst_at;
}

TEST(Exp2, WholeNumbersAreExact) {
  for (int k = -400; k <= 400; ++k) EXPECT_EQ(float_bits(exp2(static_cast<float>(k))), float_bits(pow2(k))) << k;
  EXPECT_EQ(float_bits(exp2(-kInf)), 0u);
  EXPECT_EQ(exp2(kInf), kInf);
  EXPECT_EQ(exp2(-0.0f), 1.0f);
  EXPECT_EQ(float_bits(exp2(bits_float(0xFF800001u))), kNanBits);
  EXPECT_EQ(float_bits(exp2(std::nextafter(-150.0f, 0.0f))), 1u);
}

TEST(Exp2Polynomial, WithinItsStatedError) {
  for (const uint32_t sign : {0u, 0x80000000u}) {
    const Sweep s = sweep([](float f) { return exp2_polynomial(f); }, [](double f) { return std::exp2(f); }, sign,
                          sign | float_bits(0.545f));
    EXPECT_LE(s.worst, kExp2PolynomialMaxUlp) << s.worst_at;
  }
}

// Each of the two fma rounds by at most 2^-24 of its result, which is below 1/2 + |z| 2^-23.4 beyond 2^21 and below 1/2
// + |z| 2^-25.6 up to there; the two constants miss log2(e) by 2^-51.
TEST(ReduceLog2, SumIsTheProductAndTheRestIsSmall) {
  constexpr long double kLog2E = 1.442695040888963407359924681001892137L;
  for (uint64_t bits = 0; bits <= float_bits(0x1p28f); bits += sweep_stride(1009)) {
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const float z = bits_float(static_cast<uint32_t>(bits) | sign);
      const Reduced r = reduce_log2(z);
      const long double error = std::fabs(static_cast<long double>(r.n) + r.f - z * kLog2E);
      ASSERT_LE(error, 0x1p-24L + magnitude(z) * 0x1p-46L) << z;
      ASSERT_LE(magnitude(r.f), magnitude(z) <= 0x1p21f ? 0.5f + magnitude(z) * 0x1p-25f : 0.5f) << z;
    }
  }
}

TEST(ReduceLog2, LargeAndSpecialArgumentsAreLimited) {
  const Reduced limit = reduce_log2(0x1p28f);
  for (const float z : {0x1.8p28f, std::numeric_limits<float>::max(), kInf}) {
    EXPECT_EQ(reduce_log2(z).n, limit.n);
    EXPECT_EQ(float_bits(reduce_log2(z).f), float_bits(limit.f));
    EXPECT_EQ(reduce_log2(-z).n, -limit.n);
  }
  EXPECT_EQ(reduce_log2(bits_float(kNanBits)).n, -limit.n);
  EXPECT_EQ(reduce_log2(0.0f).n, 0);
  EXPECT_EQ(reduce_log2(0.0f).f, 0.0f);
  EXPECT_EQ(reduce_log2(-0.0f).n, 0);
}

TEST(Log, WithinItsStatedError) {
  const Sweep s = sweep([](float x) { return log(x); }, [](double x) { return std::log(x); });
  EXPECT_EQ(s.wrong_special, 0u);
  EXPECT_LE(s.worst, kLogMaxUlp) << s.worst_at;
}

TEST(Log, SpecialValues) {
  EXPECT_EQ(float_bits(log(1.0f)), 0u);
  EXPECT_EQ(log(0.0f), -kInf);
  EXPECT_EQ(log(-0.0f), -kInf);
  EXPECT_EQ(log(kInf), kInf);
  EXPECT_EQ(float_bits(log(-1.0f)), kNanBits);
  EXPECT_EQ(float_bits(log(-0x1p-149f)), kNanBits);
  EXPECT_EQ(float_bits(log(-kInf)), kNanBits);
  EXPECT_EQ(float_bits(log(bits_float(0xFF800001u))), kNanBits);
}

TEST(SplitLog, IsExactAndInRange) {
  for (uint64_t bits = 1; bits < 0x7F800000u; bits += sweep_stride(1009)) {
    const float s = bits_float(static_cast<uint32_t>(bits));
    const Normalised parts = split_log(s);
    ASSERT_EQ(std::ldexp(static_cast<double>(parts.m), parts.e), static_cast<double>(s));
    ASSERT_GE(parts.m, 0.707106769f) << s;
    ASSERT_LE(parts.m, 1.41421342f) << s;
  }
}

TEST(SplitLog, ProductsWithLn2HiAreExact) {
  for (int k = -32767; k <= 32767; ++k) {
    ASSERT_EQ(static_cast<double>(mul_rn(static_cast<float>(k), kLn2Hi)), k * static_cast<double>(kLn2Hi));
  }
  EXPECT_NEAR(static_cast<double>(kLn2Hi) + static_cast<double>(kLn2Lo), 0.69314718055994530942, 0x1p-39);
}

TEST(LogMantissa, WithinItsStatedError) {
  const Sweep s = sweep([](float m) { return log_mantissa(m); }, [](double m) { return std::log(m); },
                        float_bits(0.70710677f), float_bits(1.4142134f));
  EXPECT_LE(s.worst, kLogMaxUlp) << s.worst_at;
}

TEST(Tanh, WithinItsStatedError) {
  const Sweep s = sweep([](float x) { return tanh(x); }, [](double x) { return std::tanh(x); });
  EXPECT_EQ(s.wrong_special, 0u);
  EXPECT_LE(s.worst, kTanhMaxUlp) << s.worst_at;
}

// Every argument of its longer branch, a sample of the others.
TEST(Tanh, StraightLineForm) {
  const auto expect_equal = [](uint32_t bits) {
    ASSERT_EQ(float_bits(tanh_of_finite(bits_float(bits))), float_bits(tanh(bits_float(bits)))) << bits_float(bits);
  };
  for (uint32_t bits = float_bits(0.54f); bits <= float_bits(10.5f); ++bits) expect_equal(bits);
  for (uint64_t bits = 0; bits < 0x7F800000u; bits += sweep_stride(10007)) {
    expect_equal(static_cast<uint32_t>(bits));
    if (bits > 0) expect_equal(static_cast<uint32_t>(bits) | 0x80000000u);
  }
}

TEST(Erf, WithinItsStatedError) {
  const Sweep s = sweep([](float x) { return erf(x); }, [](double x) { return std::erf(x); });
  EXPECT_EQ(s.wrong_special, 0u);
  EXPECT_LE(s.worst, kErfMaxUlp) << s.worst_at;
}

TEST(TanhAndErf, SignsAndSpecialValues) {
  for (const auto function : {+[](float x) { return tanh(x); }, +[](float x) { return erf(x); }}) {
    EXPECT_EQ(float_bits(function(0.0f)), 0u);
    EXPECT_EQ(float_bits(function(-0.0f)), 0x80000000u);
    EXPECT_EQ(function(kInf), 1.0f);
    EXPECT_EQ(function(-kInf), -1.0f);
    EXPECT_EQ(function(10.0f), 1.0f);
    EXPECT_EQ(float_bits(function(bits_float(0xFF800001u))), kNanBits);
    for (uint64_t bits = 0; bits <= 0x7F800000u; bits += sweep_stride(10007)) {
      const float x = bits_float(static_cast<uint32_t>(bits));
      ASSERT_EQ(float_bits(function(-x)), float_bits(function(x)) | 0x80000000u);
      ASSERT_LE(function(x), 1.0f);
    }
  }
}

}  // namespace
}  // namespace isobit::numerics
