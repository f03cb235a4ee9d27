// Selection of one of two values.
#pragma once

namespace isobit::device::ptx {

// The smaller value; NaN if one of them is NaN (PTX ISA 9.7.3.14, min.NaN.f32; SM80 and newer).
__device__ __forceinline__ float min_nan(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

}  // namespace isobit::device::ptx
