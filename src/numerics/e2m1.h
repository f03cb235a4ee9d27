// The 4-bit element of NVFP4: 1 sign, 2 exponent, 1 mantissa bit. Values 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their
// negatives; neither infinity nor NaN.
#pragma once

#include <cstdint>

#include "numerics/bits.h"

namespace isobit::numerics {

// Exact. Bits 4 to 7 of the code are ignored.
ISOBIT_HD constexpr float e2m1_to_float(uint8_t code) {
  const uint32_t sign = (code & 8u) << 28;
  const uint32_t rest = code & 7u;
  const uint32_t magnitude_bits = rest >= 2 ? (rest << 22) + (126u << 23) : rest * float_bits(0.5f);
  return bits_float(sign | magnitude_bits);
}

// Round to nearest even, saturating at 6, sign kept for zero; a NaN of either sign gives +6, as the device's
// cvt.rn.satfinite does.
ISOBIT_HD constexpr uint8_t e2m1_from_float(float x) {
  if (is_nan(x)) return 7;
  const uint32_t sign = (float_bits(x) >> 28) & 8u;
  const uint32_t rest = float_bits(x) & 0x7FFFFFFFu;
  if (rest >= float_bits(6.0f)) return static_cast<uint8_t>(sign | 7u);
  // Below 1 the code counts halves; one unit in the last place of 2^22 is a half.
  if (rest < float_bits(1.0f)) return static_cast<uint8_t>(sign | (float_bits(bits_float(rest) + 0x1p22f) & 7u));
  return static_cast<uint8_t>(sign | ((rest - (126u << 23) + 0x1FFFFFu + ((rest >> 22) & 1u)) >> 22));
}

// Two codes in a byte: the element of even index in the low nibble.
ISOBIT_HD constexpr uint8_t e2m1_pack(uint8_t even, uint8_t odd) {
  return static_cast<uint8_t>((even & 15u) | ((odd & 15u) << 4));
}
ISOBIT_HD constexpr uint8_t e2m1_unpack_even(uint8_t pair) { return pair & 15u; }
ISOBIT_HD constexpr uint8_t e2m1_unpack_odd(uint8_t pair) { return pair >> 4; }

}  // namespace isobit::numerics
