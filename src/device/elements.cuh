// Vectors in global memory and the elements in them. A 32-bit word holds two 16-bit elements, the first in its low
// half, or one fp32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "numerics/fp32.h"

namespace isobit::device {

// Loads words through the read-only path (nothing may write the memory while the kernel runs) or plainly. kWords words
// at an address that is a multiple of min(16, 4 kWords).
template <bool kReadOnly, int kWords>
__device__ __forceinline__ void load_words(const void* address, uint32_t (&words)[kWords]) {
  static_assert(kWords == 2 || kWords % 4 == 0);
  if constexpr (kWords == 2) {
    const auto* from = static_cast<const uint2*>(address);
    const uint2 v = kReadOnly ? __ldg(from) : *from;
    words[0] = v.x, words[1] = v.y;
  } else {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      const auto* from = static_cast<const uint4*>(address) + i / 4;
      const uint4 v = kReadOnly ? __ldg(from) : *from;
      words[i] = v.x, words[i + 1] = v.y, words[i + 2] = v.z, words[i + 3] = v.w;
    }
  }
}

// One element or word.
template <bool kReadOnly, class T>
__device__ __forceinline__ T load_one(const T* address) {
  return kReadOnly ? __ldg(address) : *address;
}

// Stores data that is not read again soon.
template <int kWords>
__device__ __forceinline__ void store_words(void* address, const uint32_t (&words)[kWords]) {
  static_assert(kWords == 2 || kWords % 4 == 0);
  if constexpr (kWords == 2) {
    __stcs(static_cast<uint2*>(address), make_uint2(words[0], words[1]));
  } else {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      __stcs(static_cast<uint4*>(address) + i / 4, make_uint4(words[i], words[i + 1], words[i + 2], words[i + 3]));
    }
  }
}

// Conversions of a word; the bits are those of the formats in src/numerics.
template <class Format>
struct Words;

// What the two 16-bit formats share.
struct HalfWords {
  using Element = uint16_t;
  static constexpr int kElements = 2;
  static __device__ __forceinline__ uint32_t join(const uint16_t (&x)[2]) {
    return x[0] | static_cast<uint32_t>(x[1]) << 16;
  }
  static __device__ __forceinline__ uint16_t element(uint32_t word, int i) {
    return static_cast<uint16_t>(word >> (16 * i));
  }
};

template <>
struct Words<numerics::Bf16> : HalfWords {
  static __device__ __forceinline__ void unpack(uint32_t word, float (&x)[2]) {
    x[0] = __uint_as_float(word << 16);
    x[1] = __uint_as_float(word & 0xFFFF0000u);
  }
  static __device__ __forceinline__ uint32_t pack(const float (&x)[2]) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x[0], x[1]);
    return reinterpret_cast<const uint32_t&>(pair);
  }
};

template <>
struct Words<numerics::Fp16> : HalfWords {
  static __device__ __forceinline__ void unpack(uint32_t word, float (&x)[2]) {
    const float2 pair = __half22float2(reinterpret_cast<const __half2&>(word));
    x[0] = pair.x;
    x[1] = pair.y;
  }
  static __device__ __forceinline__ uint32_t pack(const float (&x)[2]) {
    const __half2 pair = __floats2half2_rn(x[0], x[1]);
    return reinterpret_cast<const uint32_t&>(pair);
  }
};

template <>
struct Words<numerics::Fp32> {
  using Element = float;
  static constexpr int kElements = 1;
  static __device__ __forceinline__ uint32_t join(const float (&x)[1]) { return __float_as_uint(x[0]); }
  static __device__ __forceinline__ float element(uint32_t word, int) { return __uint_as_float(word); }
  static __device__ __forceinline__ void unpack(uint32_t word, float (&x)[1]) { x[0] = __uint_as_float(word); }
  static __device__ __forceinline__ uint32_t pack(const float (&x)[1]) {
    return numerics::float_bits(numerics::canonical_nan(x[0]));
  }
};

// Elements of two tensors that alternate in memory, x0 y0 x1 y1 ... A couple of 16-bit elements is one word, of fp32
// two.

// The couple as (x, y), or as (y, x) if that is the order of memory.
template <class Format>
__device__ __forceinline__ void unpack_couple(const uint32_t* couple, bool swapped, float& x, float& y) {
  float values[2];
  if constexpr (std::is_same_v<Format, numerics::Bf16>) {
    // The selectors stand in registers, so the order costs nothing: a half and 16 zero bits.
    values[0] = __uint_as_float(__byte_perm(couple[0], 0, swapped ? 0x3244 : 0x1044));
    values[1] = __uint_as_float(__byte_perm(couple[0], 0, swapped ? 0x1044 : 0x3244));
  } else if constexpr (Words<Format>::kElements == 2) {
    Words<Format>::unpack(__byte_perm(couple[0], 0, swapped ? 0x1032 : 0x3210), values);
  } else {
    values[0] = __uint_as_float(swapped ? couple[1] : couple[0]);
    values[1] = __uint_as_float(swapped ? couple[0] : couple[1]);
  }
  x = values[0], y = values[1];
}

// The inverse, with one rounding each.
template <class Format>
__device__ __forceinline__ void pack_couple(float x, float y, bool swapped, uint32_t* couple) {
  if constexpr (Words<Format>::kElements == 2) {
    couple[0] = __byte_perm(Words<Format>::pack({x, y}), 0, swapped ? 0x1032 : 0x3210);
  } else {
    const uint32_t first = Words<Format>::pack({x});
    const uint32_t second = Words<Format>::pack({y});
    couple[0] = swapped ? second : first;
    couple[1] = swapped ? first : second;
  }
}

// Words that hold couples, as words of one tensor each.
template <class Format, int kWords>
__device__ __forceinline__ void split_couples(const uint32_t* couples, uint32_t (&first)[kWords],
                                              uint32_t (&second)[kWords]) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    if constexpr (Words<Format>::kElements == 2) {
      first[i] = __byte_perm(couples[2 * i], couples[2 * i + 1], 0x5410);
      second[i] = __byte_perm(couples[2 * i], couples[2 * i + 1], 0x7632);
    } else {
      first[i] = couples[2 * i];
      second[i] = couples[2 * i + 1];
    }
  }
}

// The inverse.
template <class Format, int kWords>
__device__ __forceinline__ void join_couples(const uint32_t (&first)[kWords], const uint32_t (&second)[kWords],
                                             uint32_t (&couples)[2 * kWords]) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    if constexpr (Words<Format>::kElements == 2) {
      couples[2 * i] = __byte_perm(first[i], second[i], 0x5410);
      couples[2 * i + 1] = __byte_perm(first[i], second[i], 0x7632);
    } else {
      couples[2 * i] = first[i];
      couples[2 * i + 1] = second[i];
    }
  }
}

// Two neighbouring elements from fp32: in one access if `pairs` says that they are aligned to it.
template <class Format>
__device__ __forceinline__ void store_pair(char* to, float first, float second, bool pairs, bool has_second) {
  using Element = typename Words<Format>::Element;
  const Element low = Format::from_float(first);
  const Element high = Format::from_float(second);
  auto* const elements = reinterpret_cast<Element*>(to);
  if (pairs && has_second) {
    if constexpr (std::is_same_v<Element, float>) {
      *reinterpret_cast<float2*>(to) = make_float2(low, high);
    } else {
      *reinterpret_cast<uint32_t*>(to) = low | static_cast<uint32_t>(high) << 16;
    }
    return;
  }
  elements[0] = low;
  if (has_second) elements[1] = high;
}

}  // namespace isobit::device
