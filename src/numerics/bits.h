// Bit patterns of fp32 values.
#pragma once

#include <cstdint>

#include "numerics/host_device.h"

namespace isobit::numerics {

// The one fp32 NaN that isobit writes: the NaN of the tensor cores and of the device's conversions.
constexpr uint32_t kNanBits = 0x7FFFFFFF;

ISOBIT_HD constexpr uint32_t float_bits(float x) { return __builtin_bit_cast(uint32_t, x); }

ISOBIT_HD constexpr float bits_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }

ISOBIT_HD constexpr bool is_nan(float x) { return (float_bits(x) & 0x7FFFFFFFu) > 0x7F800000u; }

// x, or the NaN 7FFFFFFF in place of any NaN.
ISOBIT_HD constexpr float canonical_nan(float x) { return is_nan(x) ? bits_float(kNanBits) : x; }

// |x| and the magnitude of x with the sign of s; both work on bits, so NaNs pass unchanged but for the sign.
ISOBIT_HD constexpr float magnitude(float x) { return bits_float(float_bits(x) & 0x7FFFFFFFu); }
ISOBIT_HD constexpr float with_sign(float x, float s) {
  return bits_float((float_bits(x) & 0x7FFFFFFFu) | (float_bits(s) & 0x80000000u));
}

// 2^k, exact for every k in [-149, 127]; +0 below, +inf above.
ISOBIT_HD constexpr float pow2(int k) {
  if (k > 127) return bits_float(0x7F800000u);
  if (k >= -126) return bits_float(static_cast<uint32_t>(k + 127) << 23);
  return k >= -149 ? bits_float(1u << (k + 149)) : 0.0f;
}

}  // namespace isobit::numerics
