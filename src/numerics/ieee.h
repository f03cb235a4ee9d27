// The operations of the value path: IEEE 754 binary32, one rounding to nearest even each.
// The host needs -ffp-contract=off and round-to-nearest without flushing; the device needs no flag, the intrinsics say
// it. A NaN result has unspecified bits here: pass it through canonical_nan before it is written.
#pragma once

#include <cmath>

#include "numerics/bits.h"

namespace isobit::numerics {

#ifdef __CUDA_ARCH__
ISOBIT_HD float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }
ISOBIT_HD float add_rn(float a, float b) { return __fadd_rn(a, b); }
ISOBIT_HD float sub_rn(float a, float b) { return __fsub_rn(a, b); }
ISOBIT_HD float mul_rn(float a, float b) { return __fmul_rn(a, b); }
ISOBIT_HD float div_rn(float a, float b) { return __fdiv_rn(a, b); }
#else
ISOBIT_HD float fma_rn(float a, float b, float c) { return std::fma(a, b, c); }
ISOBIT_HD float add_rn(float a, float b) { return a + b; }
ISOBIT_HD float sub_rn(float a, float b) { return a - b; }
ISOBIT_HD float mul_rn(float a, float b) { return a * b; }
ISOBIT_HD float div_rn(float a, float b) { return a / b; }
#endif

// The nearest integer, ties to even; the sign of a zero result is that of x.
ISOBIT_HD float rint_rn(float x) { return ::rintf(x); }

// minimum and maximum of IEEE 754-2019: a NaN operand gives the NaN 7FFFFFFF, and -0 is less than +0.
ISOBIT_HD constexpr float minimum(float a, float b) {
  if (is_nan(a) || is_nan(b)) return bits_float(kNanBits);
  if (a == b) return bits_float(float_bits(a) | float_bits(b));
  return a < b ? a : b;
}
ISOBIT_HD constexpr float maximum(float a, float b) {
  if (is_nan(a) || is_nan(b)) return bits_float(kNanBits);
  if (a == b) return bits_float(float_bits(a) & float_bits(b));
  return a > b ? a : b;
}

}  // namespace isobit::numerics
