// The value of a tree node and the merge of two; docs/bit-contract.md section 3.3.
#pragma once

#include <cstdint>

#include "numerics/ieee.h"
#include "ops/linear_logp/tree.h"

namespace isobit::linear_logp {

inline constexpr float kLn2 = 0x1.62e43p-1f;

// s = sum of 2^(n-r) P(f) over the node's logits, q = the same terms times their logit relative to r, in natural units.
struct Node {
  int32_t r;
  float s;
  float q;  // only with entropy
};

inline constexpr int32_t kIdentityExponent = INT32_MIN;
// Of a node that holds a NaN or +inf: above the exponent of every finite logit, so that no merge scales the NaN away.
inline constexpr int32_t kNanExponent = 1 << 30;

ISOBIT_HD constexpr Node identity_node() { return {kIdentityExponent, 0.0f, 0.0f}; }
ISOBIT_HD constexpr Node nan_node() {
  return {kNanExponent, numerics::bits_float(numerics::kNanBits), numerics::bits_float(numerics::kNanBits)};
}

ISOBIT_HD constexpr bool is_identity(const Node& node) { return node.r == kIdentityExponent; }

// x 2^-k for k >= 0 with gradual underflow; +0 for k > 149.
ISOBIT_HD float scale_down(float x, int32_t k) {
  if (k == 0) return x;
  return k > 149 ? 0.0f : numerics::mul_rn(x, numerics::pow2(-k));
}

// q relative to an exponent that is higher by k.
ISOBIT_HD float shift_weighted(const Node& node, int32_t k) {
  if (k == 0) return node.q;
  return numerics::fma_rn(-numerics::mul_rn(static_cast<float>(k), kLn2), node.s, node.q);
}

// left holds the lower ids.
template <bool kEntropy>
ISOBIT_HD Node merge(const Node& left, const Node& right) {
  if (is_identity(left)) return right;
  if (is_identity(right)) return left;
  const int32_t r = left.r > right.r ? left.r : right.r;
  const int32_t left_k = r - left.r;
  const int32_t right_k = r - right.r;
  const float s = numerics::add_rn(scale_down(left.s, left_k), scale_down(right.s, right_k));
  if constexpr (!kEntropy) return {r, s, 0.0f};
  return {r, s,
          numerics::add_rn(scale_down(shift_weighted(left, left_k), left_k),
                           scale_down(shift_weighted(right, right_k), right_k))};
}

// Takes complete nodes in ascending order, without gaps, that together are one node of a level, and leaves its value.
template <bool kEntropy>
class Climb {
 public:
  ISOBIT_HD Climb(int64_t vocab, int level) : vocab_(vocab), level_(level) {}

  ISOBIT_HD void push(NodeId id, Node value) {
    while (id.level < level_) {
      Node& above = partial_[id.level + 1];
      above = is_first_child(id) ? value : merge<kEntropy>(above, value);
      if (!is_last_child(id, vocab_)) return;
      value = above;
      id = parent(id);
    }
    partial_[level_] = value;
  }

  ISOBIT_HD const Node& value() const { return partial_[level_]; }

 private:
  int64_t vocab_;
  int level_;
  Node partial_[kMaxLevel + 1];
};

}  // namespace isobit::linear_logp
