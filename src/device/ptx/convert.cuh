// Conversions to and from 16-bit and 8-bit floats, SM89 and newer (PTX ISA 9.7.9.21, cvt). Each gives the bits of its
// namesake in src/numerics for all 2^32 inputs, shown on an H200 by numerics_device_test.
#pragma once

#include <cstdint>

namespace isobit::device::ptx {

// Two values rounded to nearest even; `even` goes to the low half. The instruction's first source is the high one.
__device__ __forceinline__ uint32_t bf16x2_from_floats(float even, float odd) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(odd), "f"(even));
  return pair;
}

__device__ __forceinline__ uint32_t fp16x2_from_floats(float even, float odd) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(odd), "f"(even));
  return pair;
}

// Whether the target has the conversions to and from E4M3.
#if __CUDA_ARCH__ >= 890
inline constexpr bool kConvertsToE4m3 = true;
#else
inline constexpr bool kConvertsToE4m3 = false;
#endif

__device__ __forceinline__ uint16_t e4m3x2_from_floats(float even, float odd) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(odd), "f"(even));
  return pair;
}

// Whether the target has the conversion to E2M1: the family- and architecture-specific ones of SM100 and newer.
#if __CUDA_ARCH__ >= 1000 && (defined(__CUDA_ARCH_FAMILY_SPECIFIC__) || defined(__CUDA_ARCH_SPECIFIC__))
inline constexpr bool kConvertsToE2m1 = true;
#else
inline constexpr bool kConvertsToE2m1 = false;
#endif

// Two codes in a byte; `even` in the low nibble. No GPU has shown its bits yet: the ISA's rule is that of
// numerics::e2m1_from_float, and the interpreter follows it.
__device__ __forceinline__ uint32_t e2m1x2_from_floats(float even, float odd) {
  uint32_t pair = 0;
  if constexpr (kConvertsToE2m1) {
    asm("{\n"
        ".reg .b8 pair;\n"
        "cvt.rn.satfinite.e2m1x2.f32 pair, %1, %2;\n"
        "cvt.u32.u8 %0, pair;\n"
        "}"
        : "=r"(pair)
        : "f"(odd), "f"(even));
  }
  return pair;
}

// Two e4m3 to fp16, exact; NaN stays NaN.
__device__ __forceinline__ uint32_t fp16x2_from_e4m3x2(uint16_t pair) {
  uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
  return halves;
}

__device__ __forceinline__ float float_from_fp16(uint16_t half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}

}  // namespace isobit::device::ptx
