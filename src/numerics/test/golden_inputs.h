// The inputs of the chain cases, made by integer arithmetic from the case's seed so that no file holds them, and the
// special values that a specials case puts into its chains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "numerics/bf16.h"
#include "numerics/bits.h"
#include "numerics/fp16.h"
#include "numerics/test/golden.h"

namespace isobit::numerics::golden {

struct Inputs {
  std::vector<uint16_t> a;  // [kRows][k]
  std::vector<uint16_t> b;  // [kColumns][k]
  std::vector<float> c;     // [kRows][kColumns]
};

// The output function of splitmix64 at position `index` of the sequence that starts at `seed` (64-bit wrap-around).
inline uint64_t random_bits(uint64_t seed, uint64_t index) {
  uint64_t x = seed * 0xD1342543DE82EF95u + (index + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Close to normal: the sum of the four 16-bit fields less its mean, times 2^exponent; the standard deviation is
// 37837 * 2^exponent. Exact in fp32 before the one rounding to the format.
template <class Format>
uint16_t normal_element(uint64_t bits, int exponent) {
  const auto field = [&](int i) { return static_cast<int32_t>(bits >> (16 * i) & 0xFFFF); };
  const int32_t sum = field(0) + field(1) + field(2) + field(3) - 131070;
  return Format::from_float(static_cast<float>(sum) * pow2(exponent));
}

// One group in the middle of the chain holds the values that must meet: pair kPair of it, elements 2 kPair, 2 kPair
// + 1.
constexpr int kMiddleGroup = 20;
constexpr int kPair = 3;
constexpr int kMiddle = 16 * kMiddleGroup + 2 * kPair;

template <class Format>
constexpr uint16_t kInfinity = std::is_same_v<Format, Bf16> ? 0x7F80 : 0x7C00;

// A value near the format's upper end with a random mantissa, positive.
template <class Format>
uint16_t huge_element(uint64_t bits) {
  const uint16_t span = std::is_same_v<Format, Bf16> ? 0x0FFF : 0x0BFF;
  return static_cast<uint16_t>(kInfinity<Format> - 1 - bits % span);
}

// A subnormal or one of the smallest normal values, with a random sign.
template <class Format>
uint16_t tiny_element(uint64_t bits) {
  const uint16_t span = std::is_same_v<Format, Bf16> ? 0x03FF : 0x0FFF;
  return static_cast<uint16_t>((bits & span) | (bits >> 32 & 0x8000));
}

// Row r of A, by r mod 12; x(i) is the i-th random number of the row.
template <class Format, class Random>
void make_special_row(int kind, uint16_t* row, int k, Random x) {
  const auto position = [&](uint64_t i) { return static_cast<int>(x(i) % static_cast<uint64_t>(k)); };
  const auto sign = [&](uint64_t i) { return static_cast<uint16_t>(x(i) >> 48 & 0x8000); };
  const uint16_t huge = huge_element<Format>(x(0));
  switch (kind) {
    case 0:  // nothing special
      break;
    case 1:  // a NaN of any payload and sign
      row[position(1)] = static_cast<uint16_t>(kInfinity<Format> + 1 + x(2) % (0x7FFF - kInfinity<Format>)) | sign(3);
      break;
    case 2:  // an infinity
      row[position(1)] = kInfinity<Format> | sign(3);
      break;
    case 3:  // two infinities, in one group or in two
      row[kMiddle] = kInfinity<Format> | sign(3);
      row[kMiddle + 1 + position(1) % (k - kMiddle - 1)] = kInfinity<Format> | sign(4);
      break;
    case 4:  // pairs that cancel wherever B repeats its elements
      for (int i = 0; i < k; i += 2) row[i + 1] = row[i] ^ 0x8000;
      break;
    case 5:  // huge elements in every sixteenth place on average
      for (int i = 0; i < k; ++i) {
        const uint64_t bits = x(static_cast<uint64_t>(i) + 8);
        if (bits % 16 == 0) row[i] = huge_element<Format>(bits >> 8) | static_cast<uint16_t>(bits >> 40 & 0x8000);
      }
      break;
    case 6:  // zeros of both signs, and in three of four rows one of the smallest subnormals as the last term
      for (int i = 0; i < k; ++i) row[i] = static_cast<uint16_t>(x(static_cast<uint64_t>(i) + 8) & 0x8000);
      row[k - 1] |= static_cast<uint16_t>(x(0) % 4);
      break;
    case 7:  // results near fp32's subnormal range (bf16), subnormal operands (both)
      for (int i = 0; i < k; ++i) row[i] = tiny_element<Format>(x(static_cast<uint64_t>(i) + 8));
      break;
    case 8:  // one huge pair that cancels inside its group: for large B beyond fp32's range
      row[kMiddle] = huge;
      row[kMiddle + 1] = huge ^ 0x8000;
      break;
    case 9:  // one huge element: an overflow for large B
      row[kMiddle] = huge | sign(3);
      break;
    case 10:  // a huge element and its negative one group later: inf - inf, or a cancellation across steps
      row[kMiddle] = huge;
      row[kMiddle + 16] = huge ^ 0x8000;
      break;
    default:  // NaN, infinity or a huge element as the very last term
      row[k - 1] = x(1) % 3 == 0 ? 0x7FFF : x(1) % 3 == 1 ? kInfinity<Format> : huge;
      break;
  }
}

// Column n of B, by n mod 4.
template <class Format, class Random>
void make_special_column(int kind, uint16_t* column, int k, Random x) {
  if (kind == 1) {  // zeros of both signs, also where rows hold an infinity
    for (int i = 0; i < k; ++i) {
      const uint64_t bits = x(static_cast<uint64_t>(i) + 8);
      if (bits % 4 == 0 || i == kMiddle) column[i] = static_cast<uint16_t>(bits >> 48 & 0x8000);
    }
    // With a subnormal in bf16, products around half of fp32's smallest value.
    column[k - 1] =
        Format::from_float(with_sign(pow2(-16 - static_cast<int>(x(1) % 4)), bits_float(static_cast<uint32_t>(x(2)))));
  }
  if (kind >= 2) {  // every element twice
    for (int i = 0; i < k; i += 2) column[i + 1] = column[i];
  }
  if (kind == 3) {  // and huge ones in the middle
    const uint16_t huge = huge_element<Format>(x(0));
    for (const int i : {kMiddle, kMiddle + 1, kMiddle + 16}) column[i] = huge;
  }
}

// The first accumulator of every second set of twelve rows, by column.
inline float special_accumulator(int kind) {
  constexpr uint32_t kBits[] = {0x80000000u, 0x3F9E0652u, 0x00012345u, 0x7F7FFFFFu,
                                0xFF7FFFFFu, 0x7F800000u, 0xFF800000u, 0xFFC00001u};
  return bits_float(kBits[kind % 8]);
}

template <class Format>
void add_specials(const ChainCase& chain, Inputs& inputs) {
  const auto random_of = [&](int vector) {
    const uint64_t base = static_cast<uint64_t>(vector) << 32;
    const uint64_t seed = chain.seed;
    return [base, seed](uint64_t i) { return random_bits(1000 + seed, base + i); };
  };
  for (int r = 0; r < kRows; ++r) {
    make_special_row<Format>(r % 12, inputs.a.data() + static_cast<ptrdiff_t>(r) * chain.k, chain.k, random_of(r));
    if (r / 12 % 2 == 0) continue;
    for (int n = 0; n < kColumns; ++n) {
      inputs.c[static_cast<size_t>(r * kColumns + n)] = special_accumulator(n / 4);
    }
  }
  for (int n = 0; n < kColumns; ++n) {
    make_special_column<Format>(n % 4, inputs.b.data() + static_cast<ptrdiff_t>(n) * chain.k, chain.k,
                                random_of(kRows + n));
  }
}

template <class Format>
Inputs make_inputs(const ChainCase& chain) {
  Inputs inputs;
  const auto size_a = static_cast<size_t>(kRows) * static_cast<size_t>(chain.k);
  const auto size_b = static_cast<size_t>(kColumns) * static_cast<size_t>(chain.k);
  for (size_t i = 0; i < size_a; ++i) {
    inputs.a.push_back(normal_element<Format>(random_bits(2 * chain.seed, i), -15));
  }
  for (size_t i = 0; i < size_b; ++i) {
    inputs.b.push_back(normal_element<Format>(random_bits(2 * chain.seed + 1, i), -21));
  }
  inputs.c.assign(static_cast<size_t>(kRows) * kColumns, 0.0f);
  if (chain.kind == Kind::kSpecials) add_specials<Format>(chain, inputs);
  return inputs;
}

}  // namespace isobit::numerics::golden
