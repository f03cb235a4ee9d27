// One block of 16 values to NVFP4 with the conversion instructions that the target has; the bytes are those of
// numerics::nvfp4_encode.
#pragma once

#include <cstdint>

#include "device/ptx/arithmetic.cuh"
#include "device/ptx/convert.cuh"
#include "numerics/nvfp4_block.h"

namespace isobit::device {

// Returns the scale; codes[i] has elements 8i to 8i + 7, the first in the lowest nibble.
__device__ __forceinline__ uint8_t encode_nvfp4(const numerics::Nvfp4Encoder& encoder,
                                                const float (&x)[numerics::kNvfp4Block], uint32_t (&codes)[2]) {
  if constexpr (ptx::kConvertsToE2m1) {
    float amax = 0.0f;
#pragma unroll
    for (const float value : x) amax = ptx::max_nan(amax, fabsf(value));
    const auto scale = static_cast<uint8_t>(ptx::e4m3x2_from_floats(numerics::mul_rn(amax, encoder.sixth), 0.0f));
    const float multiplier = numerics::nvfp4_multiplier(encoder, scale);
    codes[0] = codes[1] = 0;
#pragma unroll
    for (int i = 0; i < numerics::kNvfp4Block; i += 2) {
      codes[i / 8] |=
          ptx::e2m1x2_from_floats(numerics::mul_rn(x[i], multiplier), numerics::mul_rn(x[i + 1], multiplier))
          << (4 * (i % 8));
    }
    return scale;
  } else {
    return numerics::nvfp4_encode(encoder, x, codes);
  }
}

}  // namespace isobit::device
