// From logits to units: a unit's reference exponent, its terms and the order of their sum; docs/bit-contract.md section
// 3.3. The schedules (SIMD, warps) produce the same bits in another shape and are tested against reduce_unit.
#pragma once

#include "numerics/exp2.h"
#include "ops/linear_logp/node.h"

namespace isobit::linear_logp {

// A unit whose logits are all within +-kPlainLimit has reference exponent 0: neighbours then merge without scaling.
inline constexpr float kPlainLimit = 60.0f;
// Terms below 2^kSmallestTerm relative to the reference are +0; the others are normal numbers.
inline constexpr int32_t kSmallestTerm = -125;

// What a unit needs to know of all its logits before its terms. A NaN makes `not_finite` true as well as +inf.
struct UnitScan {
  float magnitude = 0.0f;                             // largest |z|; inf if a logit is -inf
  float largest = numerics::bits_float(0xFF800000u);  // largest z; -inf if there is none
  bool bad = false;                                   // a NaN or +inf among them

  ISOBIT_HD void add(float z) {
    bad = bad || !(z < numerics::bits_float(0x7F800000u));
    const float size = numerics::magnitude(z);
    magnitude = size > magnitude ? size : magnitude;
    largest = z > largest ? z : largest;
  }
};

struct UnitReference {
  int32_t r;
  bool plain;
};

// Of a unit that is neither bad nor without a finite logit.
ISOBIT_HD UnitReference unit_reference(float magnitude, float largest) {
  if (magnitude <= kPlainLimit) return {0, true};
  return {numerics::reduce_log2(largest).n, false};
}

// term = 2^(n-r) P(f); weight = its logit relative to r, so that term * weight is what entropy sums. Both +0 where the
// term is +0: -inf and logits far below the reference.
struct Term {
  float term;
  float weight;
};

ISOBIT_HD Term unit_term(float z, UnitReference reference) {
  if (z == numerics::bits_float(0xFF800000u)) return {0.0f, 0.0f};
  const numerics::Reduced reduced = numerics::reduce_log2(z);
  const int32_t d = reduced.n - reference.r;
  if (d < kSmallestTerm) return {0.0f, 0.0f};
  const uint32_t bits = numerics::float_bits(numerics::exp2_polynomial(reduced.f));
  const float term = numerics::bits_float(bits + (static_cast<uint32_t>(d) << 23));
  if (reference.plain) return {term, z};
  return {term, numerics::mul_rn(numerics::add_rn(static_cast<float>(d), reduced.f), kLn2)};
}

// Bit of the id in which the two operands of an addition differ, for each of the six levels.
ISOBIT_HD constexpr int unit_bit(int level) {
  constexpr int kBits[6] = {5, 0, 3, 4, 1, 2};
  return kBits[level];
}

// The unit of `count` logits (1 to 64; ids beyond do not exist). Scalar and slow: the definition.
template <bool kEntropy>
ISOBIT_HD Node reduce_unit(const float* z, int count) {
  UnitScan scan;
  for (int i = 0; i < count; ++i) scan.add(z[i]);
  if (scan.bad) return nan_node();
  if (scan.largest == numerics::bits_float(0xFF800000u)) return identity_node();
  const UnitReference reference = unit_reference(scan.magnitude, scan.largest);

  float term[kUnit] = {};
  float weight[kUnit] = {};
  for (int i = 0; i < count; ++i) {
    const Term t = unit_term(z[i], reference);
    term[i] = t.term;
    weight[i] = t.weight;
  }
  // weight turns into the weighted sums at the first level.
  for (int level = 0; level < 6; ++level) {
    const int step = 1 << unit_bit(level);
    for (int i = 0; i < kUnit; ++i) {
      if ((i & step) != 0) continue;
      weight[i] = level == 0 ? numerics::fma_rn(term[i + step], weight[i + step], numerics::mul_rn(term[i], weight[i]))
                             : numerics::add_rn(weight[i], weight[i + step]);
      term[i] = numerics::add_rn(term[i], term[i + step]);
    }
  }
  return {reference.r, term[0], kEntropy ? weight[0] : 0.0f};
}

// The leaf of `count` logits (1 to 128).
template <bool kEntropy>
ISOBIT_HD Node reduce_leaf(const float* z, int count) {
  constexpr int kHalf = static_cast<int>(kUnit);
  if (count <= kHalf) return reduce_unit<kEntropy>(z, count);
  return merge<kEntropy>(reduce_unit<kEntropy>(z, kHalf), reduce_unit<kEntropy>(z + kHalf, count - kHalf));
}

}  // namespace isobit::linear_logp
