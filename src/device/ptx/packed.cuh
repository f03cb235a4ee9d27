// Arithmetic on two 16-bit values in a word.
#pragma once

#include <cstdint>

namespace isobit::device::ptx {

// Products of two pairs of bf16, each rounded to nearest even; subnormals are kept (PTX ISA 9.7.4.4, fma; SM80 and
// newer have no mul of this type). Adding -0 keeps the sign of a zero.
__device__ __forceinline__ uint32_t mul_bf16x2(uint32_t a, uint32_t b) {
  uint32_t product;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(a), "r"(b), "r"(0x80008000u));
  return product;
}

// The same, where the compiler may not move it: wgmma must not come between a fragment's registers and their use.
__device__ __forceinline__ uint32_t mul_bf16x2_here(uint32_t a, uint32_t b) {
  uint32_t product;
  asm volatile("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(a), "r"(b), "r"(0x80008000u));
  return product;
}

}  // namespace isobit::device::ptx
