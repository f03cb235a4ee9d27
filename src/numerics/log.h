// The natural logarithm and its pieces.
#pragma once

#include <cstdint>

#include "numerics/ieee.h"

namespace isobit::numerics {

// ln 2 = hi + lo to 2^-39. hi = 355/512 has 9 significant bits, so k * hi is exact for every integer |k| < 2^15.
constexpr float kLn2Hi = 0.693359375f;
constexpr float kLn2Lo = -0x1.bd0106p-13f;

// The largest error of log and of log_mantissa over every argument: measured 0.8866 (log) and 0.8266 (log_mantissa).
constexpr double kLogMaxUlp = 0.95;

// s = m * 2^e with m in [sqrt(1/2), sqrt(2)).
struct Normalised {
  int32_t e;
  float m;
};

// For positive finite s, subnormals included; exact.
ISOBIT_HD constexpr Normalised split_log(float s) {
  constexpr uint32_t kSqrtHalfBits = 0x3F3504F3;
  const bool subnormal = float_bits(s) < 0x00800000u;
  const uint32_t shifted = float_bits(subnormal ? s * 0x1p23f : s) + (0x3F800000u - kSqrtHalfBits);
  const int32_t e = static_cast<int32_t>(shifted >> 23) - (subnormal ? 127 + 23 : 127);
  return {e, bits_float((shifted & 0x007FFFFFu) + kSqrtHalfBits)};
}

// ln m for m in [sqrt(1/2), sqrt(2)): with f = m - 1 (exact), f - f^2/2 + f^3 P(f). P is a near-minimax fit of degree
// 8, its coefficients rounded to fp32 one by one. ln 1 = +0 exactly.
ISOBIT_HD float log_mantissa(float m) {
  const float f = sub_rn(m, 1.0f);
  float p = fma_rn(0x1.1d8ea6p-4f, f, -0x1.d635bcp-4f);
  p = fma_rn(p, f, 0x1.dea282p-4f);
  p = fma_rn(p, f, -0x1.fcf4c6p-4f);
  p = fma_rn(p, f, 0x1.23d21ap-3f);
  p = fma_rn(p, f, -0x1.555b4ap-3f);
  p = fma_rn(p, f, 0x1.999d5ap-3f);
  p = fma_rn(p, f, -0x1.fffffcp-3f);
  p = fma_rn(p, f, 0x1.555554p-2f);
  const float square = mul_rn(f, f);
  const float tail = fma_rn(-0.5f, square, mul_rn(mul_rn(f, square), p));
  return add_rn(f, tail);
}

// ln s over all of fp32: ln 0 = -inf for either zero, ln inf = inf, a negative or NaN argument gives NaN 7FFFFFFF.
ISOBIT_HD float log(float s) {
  if (is_nan(s) || s < 0.0f) return bits_float(kNanBits);
  if (s == 0.0f) return bits_float(0xFF800000u);
  if (float_bits(s) == 0x7F800000u) return s;
  const Normalised parts = split_log(s);
  const float e = static_cast<float>(parts.e);
  return fma_rn(e, kLn2Hi, fma_rn(e, kLn2Lo, log_mantissa(parts.m)));
}

}  // namespace isobit::numerics
