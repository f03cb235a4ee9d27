// The arithmetic of Hopper's tensor cores for bf16 and fp16 operands with an fp32 accumulator, as a scalar model that
// is meant to be read: the fast CPU backend and every GPU schedule are tested against it.
//
// One k16 step, d = c + sum of a[i] * b[i]:
//  1. E = the largest exponent of the 17 nonzero terms. A product's exponent is e(a) + e(b), its significand product in
//     [1, 4) is not renormalised; a subnormal has its format's smallest exponent.
//  2. Every term is truncated toward zero to a multiple of 2^(E-25); the truncated terms are added exactly.
//  3. The sum is truncated toward zero to fp32, subnormals included; from 2^128 on it is an infinity. A zero is +0.
// Infinities and NaN come first: a NaN operand, inf * 0 and inf - inf give 7FFFFFFF; terms beyond fp32's range that
// cancel are finite terms like any other. wgmma m64n{8,32,128}k16 and mma.sync.m16n8k16 on an H200 give these bits
// (2026-11-29); golden files in test/golden.
#pragma once

#include <algorithm>
#include <cstdint>

#include "numerics/bf16.h"
#include "numerics/bits.h"
#include "numerics/fp16.h"

namespace isobit::numerics {

// A finite value significand * 2^(exponent - fraction_bits); exponent is the one that rule 1 compares.
struct MmaTerm {
  int64_t significand;
  int exponent;
  int fraction_bits;
};

// The sign, exponent field and mantissa field of a bit pattern, as a term.
inline MmaTerm mma_term(bool negative, uint32_t exponent_field, uint32_t mantissa, int mantissa_bits, int bias) {
  const bool normal = exponent_field != 0;
  const int64_t significand = normal ? (int64_t{1} << mantissa_bits) + mantissa : mantissa;
  return {negative ? -significand : significand, static_cast<int>(normal ? exponent_field : 1) - bias, mantissa_bits};
}

template <class Format>
MmaTerm mma_term(uint16_t h) {
  const uint32_t mantissa = h & ((1u << Format::kMantissaBits) - 1);
  const uint32_t exponent_field = (h >> Format::kMantissaBits) & Format::kExponentMask;
  return mma_term(h >> 15 != 0, exponent_field, mantissa, Format::kMantissaBits, Format::kExponentBias);
}

inline MmaTerm mma_term(float x) {
  const uint32_t bits = float_bits(x);
  return mma_term(bits >> 31 != 0, (bits >> 23) & 0xFF, bits & 0x7FFFFF, 23, 127);
}

// The term's value in units of 2^unit, truncated toward zero. At most 28 bits wide when unit = E - 25.
inline int64_t truncate_term(const MmaTerm& term, int unit) {
  const int shift = term.exponent - term.fraction_bits - unit;
  if (term.significand == 0) return 0;  // its exponent took no part in the choice of the unit
  if (shift >= 0) return term.significand * (int64_t{1} << shift);
  return shift <= -63 ? 0 : term.significand / (int64_t{1} << -shift);
}

// sum * 2^unit truncated toward zero to fp32; |sum| < 2^40.
inline float truncate_to_float(int64_t sum, int unit) {
  if (sum == 0) return 0.0f;
  const uint32_t sign = sum < 0 ? 0x80000000u : 0u;
  const uint64_t size = sum < 0 ? -static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  const int leading = 63 - __builtin_clzll(size) + unit;
  if (leading > 127) return bits_float(sign | 0x7F800000u);
  const int last = std::max(leading - 23, -149);
  const int shift = last - unit;
  const uint64_t kept = shift <= 0 ? size << -shift : shift > 63 ? 0 : size >> shift;
  if (kept == 0) return 0.0f;
  // A normal number's leading one adds 1 to the exponent field that it overlaps.
  return bits_float(sign | ((static_cast<uint32_t>(last + 149) << 23) + static_cast<uint32_t>(kept)));
}

// What infinities and NaN among c and the products decide: false when everything is finite, else the result in *out.
template <class Format>
bool mma_special(float c, const uint16_t* a, const uint16_t* b, float* out) {
  bool nan = is_nan(c);
  bool plus = float_bits(c) == 0x7F800000u;
  bool minus = float_bits(c) == 0xFF800000u;
  for (int i = 0; i < 16; ++i) {
    const float x = Format::to_float(a[i]);
    const float y = Format::to_float(b[i]);
    const bool infinite = float_bits(magnitude(x)) == 0x7F800000u || float_bits(magnitude(y)) == 0x7F800000u;
    nan |= is_nan(x) || is_nan(y) || (infinite && (x == 0.0f || y == 0.0f));
    const bool negative = (float_bits(x) ^ float_bits(y)) >> 31 != 0;
    plus |= infinite && !negative;
    minus |= infinite && negative;
  }
  if (!nan && !plus && !minus) return false;
  *out = nan || (plus && minus) ? bits_float(kNanBits) : bits_float(plus ? 0x7F800000u : 0xFF800000u);
  return true;
}

// One k16 step. Format: Bf16 or Fp16; a and b: 16 elements.
template <class Format>
float hopper_mma_step(float c, const uint16_t a[16], const uint16_t b[16]) {
  float special;
  if (mma_special<Format>(c, a, b, &special)) return special;
  MmaTerm terms[17];
  for (int i = 0; i < 16; ++i) {
    const MmaTerm x = mma_term<Format>(a[i]);
    const MmaTerm y = mma_term<Format>(b[i]);
    terms[i] = {x.significand * y.significand, x.exponent + y.exponent, x.fraction_bits + y.fraction_bits};
  }
  terms[16] = mma_term(c);
  constexpr int kNone = -100000;
  int largest = kNone;
  for (const MmaTerm& term : terms) {
    if (term.significand != 0) largest = std::max(largest, term.exponent);
  }
  if (largest == kNone) return 0.0f;
  constexpr int kKeptBits = 25;
  const int unit = largest - kKeptBits;
  int64_t sum = 0;
  for (const MmaTerm& term : terms) sum += truncate_term(term, unit);
  return truncate_to_float(sum, unit);
}

// The chain of k16 steps over ascending k from c; a last group of fewer than 16 elements is padded with +0.
template <class Format>
float hopper_chain(float c, const uint16_t* a, const uint16_t* b, int64_t k) {
  for (int64_t begin = 0; begin < k; begin += 16) {
    uint16_t group_a[16] = {};
    uint16_t group_b[16] = {};
    const int64_t count = std::min<int64_t>(16, k - begin);
    std::copy_n(a + begin, count, group_a);
    std::copy_n(b + begin, count, group_b);
    c = hopper_mma_step<Format>(c, group_a, group_b);
  }
  return c;
}

// The dot product: the chain from +0.
template <class Format>
float hopper_dot(const uint16_t* a, const uint16_t* b, int64_t k) {
  return hopper_chain<Format>(0.0f, a, b, k);
}

}  // namespace isobit::numerics
