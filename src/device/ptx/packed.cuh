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

// The same by one half of b, for both of a. Written so that the multiplication selects the half itself.
template <int kHalf>
__device__ __forceinline__ uint32_t mul_bf16x2_by_half(uint32_t a, uint32_t b) {
  uint32_t product;
  if constexpr (kHalf == 0) {
    asm volatile(
        "{\n"
        ".reg .b16 low, high;\n"
        ".reg .b32 both;\n"
        "mov.b32 {low, high}, %2;\n"
        "mov.b32 both, {low, low};\n"
        "fma.rn.bf16x2 %0, %1, both, %3;\n"
        "}"
        : "=r"(product)
        : "r"(a), "r"(b), "r"(0x80008000u));
  } else {
    asm volatile(
        "{\n"
        ".reg .b16 low, high;\n"
        ".reg .b32 both;\n"
        "mov.b32 {low, high}, %2;\n"
        "mov.b32 both, {high, high};\n"
        "fma.rn.bf16x2 %0, %1, both, %3;\n"
        "}"
        : "=r"(product)
        : "r"(a), "r"(b), "r"(0x80008000u));
  }
  return product;
}

// The same, where the compiler may not move it: wgmma must not come between a fragment's registers and their use.
__device__ __forceinline__ uint32_t mul_bf16x2_here(uint32_t a, uint32_t b) {
  uint32_t product;
  asm volatile("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(a), "r"(b), "r"(0x80008000u));
  return product;
}

}  // namespace isobit::device::ptx
