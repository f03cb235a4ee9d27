// Selection of one of two values, or of their bits.
#pragma once

#include <cstdint>

namespace isobit::device::ptx {

// The smaller value; NaN if one of them is NaN (PTX ISA 9.7.3.14, min.NaN.f32; SM80 and newer).
__device__ __forceinline__ float min_nan(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

// x with the sign bit of s, in one instruction (PTX ISA 9.7.8.6, lop3: (x, s, mask) -> mask ? s : x). Of any expression
// in C++ the compiler makes two, because it takes x and ~mask for one step.
__device__ __forceinline__ float with_sign_of(float x, float s) {
  float result;
  asm("lop3.b32 %0, %1, %2, 0x80000000, 0xD8;" : "=f"(result) : "f"(x), "f"(s));
  return result;
}

}  // namespace isobit::device::ptx
