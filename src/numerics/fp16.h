// IEEE 754 binary16 as a bit pattern: 1 sign, 5 exponent, 10 mantissa bits.
#pragma once

#include <cstdint>

#include "numerics/bits.h"

namespace isobit::numerics {

// Exact; any NaN becomes 7FFFFFFF (what the device's conversion gives).
ISOBIT_HD constexpr float fp16_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t rest = h & 0x7FFFu;
  if (rest > 0x7C00u) return bits_float(kNanBits);
  if (rest == 0x7C00u) return bits_float(sign | 0x7F800000u);
  // Below the normal range the code counts units of 2^-24.
  if (rest < 0x0400u) return bits_float(sign | float_bits(static_cast<float>(rest) * 0x1p-24f));
  return bits_float(sign | ((rest << 13) + (112u << 23)));
}

// Round to nearest even, gradual underflow, overflow (from 65520) to infinity, any NaN to 7FFF.
ISOBIT_HD constexpr uint16_t fp16_from_float(float x) {
  if (is_nan(x)) return 0x7FFF;
  const uint32_t sign = (float_bits(x) >> 16) & 0x8000u;
  const uint32_t rest = float_bits(x) & 0x7FFFFFFFu;
  if (rest >= float_bits(65520.0f)) return static_cast<uint16_t>(sign | 0x7C00u);
  // One unit in the last place of 0.5 is 2^-24, the unit of binary16's subnormals: one addition rounds to it.
  if (rest < float_bits(0x1p-14f)) {
    return static_cast<uint16_t>(sign | (float_bits(bits_float(rest) + 0.5f) - float_bits(0.5f)));
  }
  return static_cast<uint16_t>(sign | ((rest - (112u << 23) + 0xFFFu + ((rest >> 13) & 1u)) >> 13));
}

// The format as a template argument.
struct Fp16 {
  static constexpr int kMantissaBits = 10;
  static constexpr int kExponentBias = 15;
  static constexpr uint32_t kExponentMask = 0x1F;
  ISOBIT_HD static constexpr float to_float(uint16_t h) { return fp16_to_float(h); }
  ISOBIT_HD static constexpr uint16_t from_float(float x) { return fp16_from_float(x); }
};

}  // namespace isobit::numerics
