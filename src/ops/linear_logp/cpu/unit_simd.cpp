#include "ops/linear_logp/cpu/unit_simd.h"

#include <algorithm>

#include "ops/linear_logp/logit.h"
#include "ops/linear_logp/unit.h"

namespace isobit::linear_logp::cpu {
namespace {

using numerics::add_rn;
using numerics::bits_float;
using numerics::float_bits;
using numerics::fma_rn;
using numerics::mul_rn;
using numerics::sub_rn;

constexpr int kIds = static_cast<int>(kUnit);
constexpr int32_t kInfinityBits = 0x7F800000;

// The range of the largest logit in which the loop below may stand for reduce_log2 and unit_term: smaller logits than
// -kFar then have a term of +0, as they have when they are lifted to -kFar.
constexpr float kNear = 0x1p20f;
constexpr float kFar = 0x1p21f;

struct Bounds {
  int32_t magnitude;  // bits of the largest |z|; above kInfinityBits if there is a NaN
  int32_t ordered;    // largest z, as an integer in the order of the reals
};

int32_t to_ordered(int32_t bits) { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }

Bounds find_bounds(const float* z) {
  Bounds bounds = {0, INT32_MIN};
  for (int i = 0; i < kIds; ++i) {
    const auto bits = static_cast<int32_t>(float_bits(z[i]));
    bounds.magnitude = std::max(bounds.magnitude, bits & 0x7FFFFFFF);
    bounds.ordered = std::max(bounds.ordered, to_ordered(bits));
  }
  return bounds;
}

// The tree over a unit's first 32 sums: bits 0, 3, 4, 1, 2 of the id.
float add_tree(const float* sums) {
  float bit0[16];
  for (int i = 0; i < 16; ++i) bit0[i] = add_rn(sums[2 * i], sums[2 * i + 1]);
  float bit3[8];
  for (int i = 0; i < 4; ++i) {
    bit3[i] = add_rn(bit0[i], bit0[i + 4]);
    bit3[i + 4] = add_rn(bit0[i + 8], bit0[i + 12]);
  }
  float bit4[4];
  for (int i = 0; i < 4; ++i) bit4[i] = add_rn(bit3[i], bit3[i + 4]);
  return add_rn(add_rn(bit4[0], bit4[1]), add_rn(bit4[2], bit4[3]));
}

// All logits of the unit exist, the largest is within +-kNear.
template <bool kEntropy>
Node reduce_near(const float* z, UnitReference reference) {
  float term[kIds];
  float weight[kIds];
  for (int i = 0; i < kIds; ++i) {
    const float x = z[i] > -kFar ? z[i] : -kFar;
    const float shifted = fma_rn(x, numerics::kLog2EHi, numerics::kRoundingShift);
    const float n = sub_rn(shifted, numerics::kRoundingShift);
    const float f = fma_rn(x, numerics::kLog2ELo, fma_rn(x, numerics::kLog2EHi, -n));
    // Shifted values are 2^23 + 2^22 + n with a unit in the last place of 1, so their bits count n.
    const int32_t d = static_cast<int32_t>(float_bits(shifted) - float_bits(numerics::kRoundingShift)) - reference.r;
    const uint32_t bits = float_bits(numerics::exp2_polynomial(f)) + (static_cast<uint32_t>(d) << 23);
    const uint32_t keep = d < kSmallestTerm ? 0u : ~0u;
    term[i] = bits_float(bits & keep);
    if constexpr (kEntropy) {
      const float relative = mul_rn(add_rn(static_cast<float>(d), f), kLn2);
      weight[i] = bits_float(float_bits(reference.plain ? x : relative) & keep);
    }
  }
  constexpr int kHalf = kIds / 2;
  float sums[kHalf];
  for (int i = 0; i < kHalf; ++i) sums[i] = add_rn(term[i], term[i + kHalf]);
  Node node = {reference.r, add_tree(sums), 0.0f};
  if constexpr (kEntropy) {
    for (int i = 0; i < kHalf; ++i) {
      sums[i] = fma_rn(term[i + kHalf], weight[i + kHalf], mul_rn(term[i], weight[i]));
    }
    node.q = add_tree(sums);
  }
  return node;
}

}  // namespace

void finish_logits(float* z, int count, const float* bias, float softcap, float temperature) {
  if (bias != nullptr) {
    for (int i = 0; i < count; ++i) z[i] = add_rn(z[i], bias[i]);
  }
  if (softcap != 0.0f) {
    for (int i = 0; i < count; ++i) z[i] = softcap_logit(z[i], softcap);
  }
  if (temperature != 1.0f) {
    for (int i = 0; i < count; ++i) z[i] = temper_logit(z[i], temperature);
  }
}

template <bool kEntropy>
Node reduce_unit_simd(const float* z, int count) {
  if (count < kIds) return reduce_unit<kEntropy>(z, count);
  const Bounds bounds = find_bounds(z);
  if (bounds.magnitude <= static_cast<int32_t>(float_bits(kPlainLimit))) return reduce_near<kEntropy>(z, {0, true});
  if (bounds.magnitude > kInfinityBits || bounds.ordered == kInfinityBits) return nan_node();
  const float largest = bits_float(static_cast<uint32_t>(to_ordered(bounds.ordered)));
  if (numerics::magnitude(largest) > kNear) return reduce_unit<kEntropy>(z, count);
  return reduce_near<kEntropy>(z, unit_reference(bits_float(static_cast<uint32_t>(bounds.magnitude)), largest));
}

template Node reduce_unit_simd<false>(const float* z, int count);
template Node reduce_unit_simd<true>(const float* z, int count);

int32_t count_before(const float* z, int count, int64_t first_id, float target_z, int64_t target_id) {
  // Equal logits count up to the target's own id.
  const auto lower = static_cast<int>(std::clamp<int64_t>(target_id - first_id, 0, count));
  int32_t before = 0;
  for (int i = 0; i < lower; ++i) before += z[i] >= target_z ? 1 : 0;
  for (int i = lower; i < count; ++i) before += z[i] > target_z ? 1 : 0;
  return before;
}

bool any_at_least(const float* z, int count, float limit) {
  int32_t found = 0;
  for (int i = 0; i < count; ++i) found += z[i] >= limit ? 1 : 0;
  return found > 0;
}

}  // namespace isobit::linear_logp::cpu
