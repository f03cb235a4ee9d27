// One block of 16 values as NVFP4: the rule of every quantiser in isobit (docs/bit-contract.md, nvfp4_quantize).
#pragma once

#include <cstdint>

#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/ieee.h"

namespace isobit::numerics {

constexpr int kNvfp4Block = 16;

// x if it may be a global scale (positive and finite), else NaN.
ISOBIT_HD constexpr float usable_global_scale(float x) {
  return x > 0.0f && x < bits_float(0x7F800000u) ? x : bits_float(kNanBits);
}

// The global encode scale of a call.
struct Nvfp4Encoder {
  float global;  // g, NaN if it was not usable
  float sixth;   // g times the fp32 nearest to 1/6
};

ISOBIT_HD Nvfp4Encoder nvfp4_encoder(float global) {
  const float usable = usable_global_scale(global);
  return {usable, mul_rn(usable, 1.0f / 6.0f)};
}

// The E4M3 byte of a block's largest magnitude.
ISOBIT_HD uint8_t nvfp4_scale(const Nvfp4Encoder& encoder, float amax) {
  return e4m3_from_float(mul_rn(amax, encoder.sixth));
}

// What the elements of a block with this scale are multiplied by. Clamped, so that a zero never meets an infinity.
ISOBIT_HD float nvfp4_multiplier(const Nvfp4Encoder& encoder, uint8_t scale) {
  if (scale == 0) return 0.0f;
  return minimum(div_rn(encoder.global, e4m3_to_float(scale)), bits_float(0x7F7FFFFFu));
}

ISOBIT_HD uint8_t nvfp4_code(float x, float multiplier) { return e2m1_from_float(mul_rn(x, multiplier)); }

// Largest magnitude of a block. The bits of magnitudes order like their values, with NaN above everything.
ISOBIT_HD float nvfp4_amax(const float (&x)[kNvfp4Block]) {
  uint32_t largest = 0;
  for (int i = 0; i < kNvfp4Block; ++i) {
    const uint32_t bits = float_bits(x[i]) & 0x7FFFFFFFu;
    largest = bits > largest ? bits : largest;
  }
  return bits_float(largest);
}

// The whole block: returns the scale; codes[i] has elements 8i to 8i + 7, the first in the lowest nibble.
ISOBIT_HD uint8_t nvfp4_encode(const Nvfp4Encoder& encoder, const float (&x)[kNvfp4Block], uint32_t (&codes)[2]) {
  const uint8_t scale = nvfp4_scale(encoder, nvfp4_amax(x));
  const float multiplier = nvfp4_multiplier(encoder, scale);
  codes[0] = codes[1] = 0;
  for (int i = 0; i < kNvfp4Block; ++i) {
    codes[i / 8] |= static_cast<uint32_t>(nvfp4_code(x[i], multiplier)) << (4 * (i % 8));
  }
  return scale;
}

}  // namespace isobit::numerics
