// The 8-bit float of NVFP4's block scales: 1 sign, 4 exponent (bias 7), 3 mantissa bits; largest value 448, no
// infinity, NaN 7F and FF.
#pragma once

#include <cstdint>

#include "numerics/bits.h"

namespace isobit::numerics {

// Exact; a NaN of either sign becomes 7FFFFFFF.
ISOBIT_HD constexpr float e4m3_to_float(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24;
  const uint32_t rest = code & 0x7Fu;
  if (rest == 0x7Fu) return bits_float(kNanBits);
  // Below the normal range the code counts units of 2^-9.
  if (rest < 8u) return bits_float(sign | float_bits(static_cast<float>(rest) * 0x1p-9f));
  return bits_float(sign | ((rest << 20) + (120u << 23)));
}

// Round to nearest even, gradual underflow, saturating at 448 (infinities too), sign kept for zero; a NaN of either
// sign gives 7F, as the device's cvt.rn.satfinite does.
ISOBIT_HD constexpr uint8_t e4m3_from_float(float x) {
  if (is_nan(x)) return 0x7F;
  const uint32_t sign = (float_bits(x) >> 24) & 0x80u;
  const uint32_t rest = float_bits(x) & 0x7FFFFFFFu;
  if (rest >= float_bits(448.0f)) return static_cast<uint8_t>(sign | 0x7Eu);
  // One unit in the last place of 2^14 is 2^-9, the unit of the subnormals: one addition rounds to it.
  if (rest < float_bits(0x1p-6f)) {
    return static_cast<uint8_t>(sign | (float_bits(bits_float(rest) + 0x1p14f) - float_bits(0x1p14f)));
  }
  return static_cast<uint8_t>(sign | ((rest - (120u << 23) + 0x7FFFFu + ((rest >> 20) & 1u)) >> 20));
}

}  // namespace isobit::numerics
