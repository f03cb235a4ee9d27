// One block of 16 values to NVFP4 with the conversion instructions that the target has, and with at most one branch
// where it has none; the bytes are those of numerics::nvfp4_encode.
#pragma once

#include <cstdint>

#include "device/ptx/arithmetic.cuh"
#include "device/ptx/convert.cuh"
#include "device/ptx/select.cuh"
#include "numerics/nvfp4_block.h"

namespace isobit::device {

// e2m1_code is numerics::e2m1_from_float for what a multiplication gives: its NaN is positive. The early returns of
// that one become hundreds of branches in a block. 2^e is the magnitude's power of two, at least 1: the codes from
// there on are 2^(e-1) apart, which is the last place of 2^(e+22). So one addition rounds to a code, to even where it
// is between two; the sum's low bits are the code less 2 e, its bits from 22 on bring 2 e, and 3 * 2^e makes the
// constants a multiple of 8. One multiplication adds both in the top bits, where the sign is. Equal for all 2^32 inputs
// but negative NaN (2026-11-30, on a host).

// The code of a magnitude below 7 with the sign of another value, in the four top bits; the others mean nothing.
__device__ __forceinline__ uint32_t e2m1_on_top(float magnitude, float sign) {
  const float power = fmaxf(__uint_as_float(__float_as_uint(magnitude) & 0x7F800000u), 1.0f);
  const uint32_t sum = __float_as_uint(numerics::fma_rn(power, 0x1p22f + 3.0f, magnitude));
  return __float_as_uint(ptx::with_sign_of(__uint_as_float(sum * 0x10000040u), sign));
}
__device__ __forceinline__ float e2m1_magnitude(float x) { return fminf(fabsf(x), 6.0f); }  // 6 for a NaN
__device__ __forceinline__ uint32_t e2m1_code(float x) { return e2m1_on_top(e2m1_magnitude(x), x) >> 28; }

__device__ __forceinline__ uint8_t nvfp4_scale_of(const numerics::Nvfp4Encoder& encoder, float amax) {
  if constexpr (ptx::kConvertsToE4m3) {
    return static_cast<uint8_t>(ptx::e4m3x2_from_floats(numerics::mul_rn(amax, encoder.sixth), 0.0f));
  } else {
    return numerics::nvfp4_scale(encoder, amax);
  }
}

__device__ __forceinline__ float nvfp4_multiplier_of(const numerics::Nvfp4Encoder& encoder, uint8_t scale) {
  if constexpr (ptx::kConvertsToE4m3) {
    const float decoded = ptx::float_from_fp16(static_cast<uint16_t>(ptx::fp16x2_from_e4m3x2(scale)));
    const float multiplier = ptx::min_nan(numerics::div_rn(encoder.global, decoded), numerics::bits_float(0x7F7FFFFFu));
    return scale == 0 ? 0.0f : multiplier;
  } else {
    return numerics::nvfp4_multiplier(encoder, scale);
  }
}

// Whether every magnitude is clamped to 6, or only those of the blocks that need it, behind a branch: fewer
// instructions, but a kernel that waits for memory is 2 to 3 % slower with it (nvfp4_quantize, H200, 2026-11-30).
enum class Nvfp4Clamp { kAlways, kIfNeeded };

// Returns the scale; codes[i] has elements 8i to 8i + 7, the first in the lowest nibble. multiplier_of(scale) is
// nvfp4_multiplier_of, or a table of it. x is used up.
template <Nvfp4Clamp kClamp, class MultiplierOf>
__device__ __forceinline__ uint8_t encode_nvfp4(const numerics::Nvfp4Encoder& encoder,
                                                const MultiplierOf& multiplier_of, float (&x)[numerics::kNvfp4Block],
                                                uint32_t (&codes)[2]) {
  float largest[4] = {};  // four chains: one would be as long as the rest
#pragma unroll
  for (int i = 0; i < numerics::kNvfp4Block; ++i) largest[i % 4] = ptx::max_nan(largest[i % 4], fabsf(x[i]));
  const float amax = ptx::max_nan(ptx::max_nan(largest[0], largest[1]), ptx::max_nan(largest[2], largest[3]));
  const uint8_t scale = nvfp4_scale_of(encoder, amax);
  float multiplier = multiplier_of(scale);
  codes[0] = codes[1] = 0;
  if constexpr (ptx::kConvertsToE2m1) {
#pragma unroll
    for (int i = 0; i < numerics::kNvfp4Block; i += 2) {
      codes[i / 8] |=
          ptx::e2m1x2_from_floats(numerics::mul_rn(x[i], multiplier), numerics::mul_rn(x[i + 1], multiplier))
          << (4 * (i % 8));
    }
  } else {
    // A normal scale is within 1/17 of amax/6, so no magnitude reaches 6.4. A subnormal, saturated or NaN scale is not.
    if (kClamp == Nvfp4Clamp::kIfNeeded && (scale < 0x08 || scale >= 0x7E)) {
#pragma unroll
      for (float& value : x) {
        const float scaled = numerics::mul_rn(value, multiplier);
        value = ptx::with_sign_of(e2m1_magnitude(scaled), scaled);
      }
      multiplier = 1.0f;
    }
#pragma unroll
    for (int i = numerics::kNvfp4Block - 1; i >= 0; --i) {
      uint32_t on_top;
      if constexpr (kClamp == Nvfp4Clamp::kAlways) {
        const float scaled = numerics::mul_rn(x[i], multiplier);
        on_top = e2m1_on_top(e2m1_magnitude(scaled), scaled);
      } else {
        on_top = e2m1_on_top(numerics::mul_rn(fabsf(x[i]), multiplier), x[i]);
      }
      codes[i / 8] = __funnelshift_l(on_top, codes[i / 8], 4);
    }
  }
  return scale;
}
__device__ __forceinline__ uint8_t encode_nvfp4(const numerics::Nvfp4Encoder& encoder,
                                                float (&x)[numerics::kNvfp4Block], uint32_t (&codes)[2]) {
  return encode_nvfp4<Nvfp4Clamp::kAlways>(
      encoder, [&](uint8_t scale) { return nvfp4_multiplier_of(encoder, scale); }, x, codes);
}

// The same for a block that the four lanes of a quad hold together: x[n] is element 4 n + lane % 4. All lanes of the
// warp take part; every lane gets the scale, lane 0 of the quad the codes.
__device__ __forceinline__ uint8_t encode_nvfp4_quad(const numerics::Nvfp4Encoder& encoder, const float (&x)[4],
                                                     uint32_t (&codes)[2]) {
  constexpr uint32_t kAll = 0xFFFFFFFFu;
  uint32_t amax = 0;
#pragma unroll
  for (const float value : x) amax = max(amax, __float_as_uint(value) & 0x7FFFFFFFu);  // NaN on top
  amax = max(amax, __shfl_xor_sync(kAll, amax, 1));
  amax = max(amax, __shfl_xor_sync(kAll, amax, 2));
  const uint8_t scale = nvfp4_scale_of(encoder, __uint_as_float(amax));
  const float multiplier = nvfp4_multiplier_of(encoder, scale);
  const uint32_t lane = threadIdx.x % 4;
  uint32_t word = 0;
#pragma unroll
  for (int n = 0; n < 4; ++n) word |= e2m1_code(numerics::mul_rn(x[n], multiplier)) << (8 * n + 4 * (lane % 2));
  // Byte n of a pair of lanes holds elements 4 n + 2 (lane / 2) and the next: byte 2 n + lane / 2 of the block.
  word |= __shfl_xor_sync(kAll, word, 1);
  const uint32_t other = __shfl_xor_sync(kAll, word, 2);
  codes[0] = __byte_perm(word, other, 0x5140);
  codes[1] = __byte_perm(word, other, 0x7362);
  return scale;
}

// The 8 bytes of a block's codes; `vector`: `to` is a multiple of 8.
__device__ __forceinline__ void store_nvfp4_codes(uint8_t* to, bool vector, const uint32_t (&codes)[2]) {
  if (vector) {
    *reinterpret_cast<uint2*>(to) = make_uint2(codes[0], codes[1]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) to[i] = static_cast<uint8_t>(codes[i / 4] >> (8 * (i % 4)));
}

}  // namespace isobit::device
