// The hyperbolic tangent.
#pragma once

#include "numerics/exp2.h"

namespace isobit::numerics {

// The largest error over every argument: measured 1.7168.
constexpr double kTanhMaxUlp = 1.75;

constexpr float kTanhNearZero = 0.55f;

// tanh x for |x| < 0.55: x + x^3 Q(x^2), Q a relative minimax (Remez) fit of degree 4 to 2^-29.7, its coefficients
// rounded to fp32 from the lowest up with a new fit of the rest after each.
ISOBIT_HD float tanh_near_zero(float x) {
  const float square = mul_rn(x, x);
  float q = fma_rn(-0x1.9921a2p-8f, square, 0x1.58e518p-6f);
  q = fma_rn(q, square, -0x1.b91e7ep-5f);
  q = fma_rn(q, square, 0x1.110ceep-3f);
  q = fma_rn(q, square, -0x1.55554ap-2f);
  return fma_rn(mul_rn(x, square), q, x);
}

// tanh x for x >= 0.55: 1 - 2 / (e^2x + 1), where the quotient is below half of 1. From 9.02 on the result is 1.
ISOBIT_HD float tanh_far_from_zero(float x) {
  const Reduced reduced = reduce_log2(2.0f * (x < 10.0f ? x : 10.0f));
  const float power = mul_rn(exp2_polynomial(reduced.f), pow2(reduced.n));
  return sub_rn(1.0f, div_rn(2.0f, add_rn(power, 1.0f)));
}

// 1 / x for x in [4, 2^30], correctly rounded unless every bit of its significand is set: Newton's steps on a linear
// guess, the first one cubic.
ISOBIT_HD float reciprocal_of_sum(float x) {
  float r = bits_float(0x7EF311C7u - float_bits(x));
  float residual = fma_rn(-x, r, 1.0f);
  r = fma_rn(r, fma_rn(residual, residual, residual), r);
  residual = fma_rn(-x, r, 1.0f);
  r = fma_rn(r, residual, r);
  residual = fma_rn(-x, r, 1.0f);
  return fma_rn(r, residual, r);
}

// The bits of tanh x for finite x, -0 excepted, in straight-line code, so that several of them run beside each other.
// No x meets the reciprocal's exception (the test takes every x from 0.55 on).
ISOBIT_HD float tanh_of_finite(float x) {
  const float size = magnitude(x);
  const float twice = 2.0f * (size < 10.0f ? size : 10.0f);
  const float rounded = fma_rn(twice, kLog2EHi, kRoundingShift);
  const float n = sub_rn(rounded, kRoundingShift);
  const float f = fma_rn(twice, kLog2ELo, fma_rn(twice, kLog2EHi, -n));
  const float power = bits_float(float_bits(exp2_polynomial(f)) + (float_bits(rounded) << 23));
  const float far = fma_rn(-2.0f, reciprocal_of_sum(add_rn(power, 1.0f)), 1.0f);
  return with_sign(size < kTanhNearZero ? tanh_near_zero(size) : far, x);
}

// tanh x over all of fp32, the sign (of zero too) kept, tanh +-inf = +-1, NaN 7FFFFFFF.
ISOBIT_HD float tanh(float x) {
  if (is_nan(x)) return bits_float(kNanBits);
  const float size = magnitude(x);
  return with_sign(size < kTanhNearZero ? tanh_near_zero(size) : tanh_far_from_zero(size), x);
}

}  // namespace isobit::numerics
