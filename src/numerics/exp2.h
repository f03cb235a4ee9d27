// 2^x, and the pieces that a softmax needs: z log2(e) = n + f and 2^f.
#pragma once

#include <cstdint>

#include "numerics/ieee.h"

namespace isobit::numerics {

// log2(e) as the sum of two fp32 values.
constexpr float kLog2EHi = 0x1.715476p+0f;
constexpr float kLog2ELo = 0x1.4ae0cp-26f;

// 1.5 * 2^23: adding it rounds a value below 2^22 in magnitude to an integer.
constexpr float kRoundingShift = 12582912.0f;

// The largest errors over every argument, measured: exp2 0.9484, exp2_polynomial for |f| <= 0.545 1.1901.
constexpr double kExp2MaxUlp = 0.95;
constexpr double kExp2PolynomialMaxUlp = 1.2;

// 2^f for f in [-0.5, 0.5] and a little beyond (reduce_log2 gives up to 0.542). A minimax fit of degree 6 whose
// constant is 1, so 2^0 = 1 exactly; the coefficients are rounded to fp32 one by one.
ISOBIT_HD float exp2_polynomial(float f) {
  float p = fma_rn(0.000153458124f, f, 0.00133999309f);
  p = fma_rn(p, f, 0.00961848907f);
  p = fma_rn(p, f, 0.0555032864f);
  p = fma_rn(p, f, 0.240226462f);
  p = fma_rn(p, f, 0.693147182f);
  return fma_rn(p, f, 1.0f);
}

// p * 2^n with one rounding for p in [0.5, 2) and n in [-252, 254]: the first product is exact.
ISOBIT_HD float scale_by_pow2(float p, int32_t n) {
  const int32_t half = n / 2;
  return mul_rn(mul_rn(p, pow2(half)), pow2(n - half));
}

// 2^x over all of fp32: gradual underflow, 2^-inf = +0, overflow and 2^inf = +inf, NaN 7FFFFFFF.
ISOBIT_HD float exp2(float x) {
  if (is_nan(x)) return bits_float(kNanBits);
  if (x >= 128.0f) return bits_float(0x7F800000u);
  if (x < -150.0f) return 0.0f;
  const float n = rint_rn(x);
  return scale_by_pow2(exp2_polynomial(sub_rn(x, n)), static_cast<int32_t>(n));
}

// z log2(e) = n + f with |f| <= 0.5 + min(|z|, 2^21) 2^-25.6, so that e^z = 2^n * 2^f.
struct Reduced {
  int32_t n;
  float f;
};

// Beyond |z| = 2^21 one rounding to an integer no longer leaves |f| near 0.5 and is repeated; |z| is limited to 2^28,
// so that n and the difference of two n fit an int32. A NaN is reduced like -2^28: test for it first.
ISOBIT_HD Reduced reduce_log2(float z) {
  if (magnitude(z) <= 0x1p21f) {
    const float n = sub_rn(fma_rn(z, kLog2EHi, kRoundingShift), kRoundingShift);
    const float f = fma_rn(z, kLog2ELo, fma_rn(z, kLog2EHi, -n));
    return {static_cast<int32_t>(n), f};
  }
  const float limited = z > -0x1p28f ? (z < 0x1p28f ? z : 0x1p28f) : -0x1p28f;
  const float n1 = rint_rn(mul_rn(limited, kLog2EHi));
  const float f1 = fma_rn(limited, kLog2ELo, fma_rn(limited, kLog2EHi, -n1));
  const float n2 = rint_rn(f1);
  return {static_cast<int32_t>(n1) + static_cast<int32_t>(n2), sub_rn(f1, n2)};
}

}  // namespace isobit::numerics
