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

__device__ __forceinline__ uint16_t e4m3x2_from_floats(float even, float odd) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(odd), "f"(even));
  return pair;
}

__device__ __forceinline__ float float_from_fp16(uint16_t half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}

}  // namespace isobit::device::ptx
