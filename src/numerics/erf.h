// The error function.
#pragma once

#include "numerics/exp2.h"

namespace isobit::numerics {

// The largest error over every argument: measured 1.1700.
constexpr double kErfMaxUlp = 1.2;

// Both fits are minimax (Remez) in the relative error of erf, their coefficients rounded to fp32 from the lowest up
// with a new fit of the rest after each.

// erf x for 0 <= x < 1: x + x Q(x^2), Q of degree 6 to 2^-29.4.
ISOBIT_HD float erf_near_zero(float x) {
  const float square = mul_rn(x, x);
  float q = fma_rn(0x1.4771fep-14f, square, -0x1.a3515ep-11f);
  q = fma_rn(q, square, 0x1.53f224p-8f);
  q = fma_rn(q, square, -0x1.b7f71ap-6f);
  q = fma_rn(q, square, 0x1.ce2ce6p-4f);
  q = fma_rn(q, square, -0x1.81273ep-2f);
  q = fma_rn(q, square, 0x1.06eba8p-3f);
  return fma_rn(x, q, x);
}

// erf x for x >= 1: 1 - 2^T(x), T = log2(1 - erf x) of degree 7, fitted on [1, 3.95] to 2^-34.3 of erf. From 3.92 on
// the result is 1.
ISOBIT_HD float erf_far_from_zero(float x) {
  const float limited = x < 4.0f ? x : 4.0f;
  float t = fma_rn(-0x1.069764p-15f, limited, 0x1.4deb64p-11f);
  t = fma_rn(t, limited, -0x1.8d9936p-8f);
  t = fma_rn(t, limited, 0x1.29f2bep-5f);
  t = fma_rn(t, limited, -0x1.4059p-3f);
  t = fma_rn(t, limited, -0x1.d3bb4cp-1f);
  t = fma_rn(t, limited, -0x1.a13014p+0f);
  t = fma_rn(t, limited, 0x1.1d1bb6p-12f);
  const float n = rint_rn(t);
  return sub_rn(1.0f, mul_rn(exp2_polynomial(sub_rn(t, n)), pow2(static_cast<int>(n))));
}

// erf x over all of fp32, the sign (of zero too) kept, erf +-inf = +-1, NaN 7FFFFFFF.
ISOBIT_HD float erf(float x) {
  if (is_nan(x)) return bits_float(kNanBits);
  const float size = magnitude(x);
  return with_sign(size < 1.0f ? erf_near_zero(size) : erf_far_from_zero(size), x);
}

}  // namespace isobit::numerics
