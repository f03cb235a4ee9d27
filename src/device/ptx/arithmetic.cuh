// Arithmetic instructions that CUDA C++ does not spell.
#pragma once

namespace isobit::device::ptx {

// The larger value; NaN if one of them is NaN (PTX ISA 9.7.3.13, max.NaN.f32).
__device__ __forceinline__ float max_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

}  // namespace isobit::device::ptx
