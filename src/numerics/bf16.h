// bfloat16 as a bit pattern: 1 sign, 8 exponent, 7 mantissa bits.
#pragma once

#include <cstdint>

#include "numerics/bits.h"

namespace isobit::numerics {

// Exact; a NaN keeps its payload.
ISOBIT_HD constexpr float bf16_to_float(uint16_t h) { return bits_float(static_cast<uint32_t>(h) << 16); }

// Round to nearest even, overflow to infinity, any NaN to 7FFF (what the device's conversion gives).
ISOBIT_HD constexpr uint16_t bf16_from_float(float x) {
  if (is_nan(x)) return 0x7FFF;
  const uint32_t bits = float_bits(x);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// The format as a template argument.
struct Bf16 {
  static constexpr int kMantissaBits = 7;
  static constexpr int kExponentBias = 127;
  static constexpr uint32_t kExponentMask = 0xFF;
  ISOBIT_HD static constexpr float to_float(uint16_t h) { return bf16_to_float(h); }
  ISOBIT_HD static constexpr uint16_t from_float(float x) { return bf16_from_float(x); }
};

}  // namespace isobit::numerics
