// NVFP4 to bf16 by one exact multiplication a pair. E2M1's bits at bf16's exponent and mantissa are the value times
// 2^-126, and the scale is kept times 2^118, so the elements come out as code * scale * 2^-8.
#pragma once

#include <cstdint>

#include "device/ptx/packed.cuh"
#include "numerics/e4m3.h"
#include "numerics/ieee.h"

namespace isobit::device {

constexpr uint32_t kNvfp4Signs = 0x80008000u;
constexpr uint32_t kNvfp4Magnitudes = 0x01C001C0u;

// A block's scale times 2^118 as bf16, in both halves.
__device__ __forceinline__ uint32_t nvfp4_scale_pair(uint8_t scale) {
  const float wide = numerics::mul_rn(numerics::e4m3_to_float(scale), 0x1p118f);
  return __byte_perm(__float_as_uint(wide), 0, 0x3232);
}

// The four codes of two bytes a and b, each twice in a word (a, a, b, b), as two pairs of bf16 times 2^-126: the codes
// in the bytes' low halves, and those in their high ones. The multiplication puts the sign and the magnitude of a code
// at their places in one go, on a pipe that the masks do not use.
__device__ __forceinline__ uint32_t nvfp4_low_codes(uint32_t bytes) {
  return (bytes & 0x000F000Fu) * 0x1040u & (kNvfp4Signs | kNvfp4Magnitudes);
}
__device__ __forceinline__ uint32_t nvfp4_high_codes(uint32_t bytes) {
  return (bytes & 0x00F000F0u) * 0x104u & (kNvfp4Signs | kNvfp4Magnitudes);
}

// Eight codes to four pairs of bf16: pair j holds elements j and j + 4.
__device__ __forceinline__ uint4 decode_nvfp4(uint32_t codes, uint32_t scale_pair) {
  uint32_t pair[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const uint32_t nibbles = codes >> (4 * j);
    pair[j] = ptx::mul_bf16x2((nibbles << 12 & kNvfp4Signs) | (nibbles << 6 & kNvfp4Magnitudes), scale_pair);
  }
  return make_uint4(pair[0], pair[1], pair[2], pair[3]);
}

// The true sum of a product of two operands that were decoded as value * 2^-8.
__device__ __forceinline__ float sum_of(float sum) { return numerics::mul_rn(sum, 0x1p16f); }

}  // namespace isobit::device
