// Many divisions by one divisor without a division each.
#pragma once

#include "numerics/ieee.h"

namespace isobit::numerics {

// t / value, correctly rounded, for t = 0 or 2^-90 <= |t| <= 2^90 and a usable value.
//
// Markstein's theorem: the first correction brings the quotient within one unit in the last place, so its residual is
// exact, and one fma with the correctly rounded reciprocal rounds correctly. The ranges keep residuals away from
// underflow and products from overflow.
struct Divisor {
  float value, reciprocal;

  ISOBIT_HD explicit Divisor(float divisor) : value(divisor), reciprocal(div_rn(1.0f, divisor)) {}

  ISOBIT_HD bool usable() const { return value >= 0x1p-30f && value <= 0x1p30f; }

  ISOBIT_HD float divide(float t) const {
    const float q0 = mul_rn(t, reciprocal);
    const float q1 = fma_rn(fma_rn(-q0, value, t), reciprocal, q0);
    return fma_rn(fma_rn(-q1, value, t), reciprocal, q1);
  }
};

// Whether all numbers seen may be divided.
struct DividendRange {
  float largest = 0.0f;          // NaN if there was one
  uint32_t least = 0xFFFFFFFFu;  // of 2 bits - 1: zeros do not count

  ISOBIT_HD bool usable() const { return largest <= 0x1p90f && least >= 2 * float_bits(0x1p-90f) - 1; }
};

}  // namespace isobit::numerics
