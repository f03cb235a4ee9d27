// Writing and reading slots of Partials.
#pragma once

#include "device/ptx/memory.cuh"
#include "numerics/bits.h"
#include "ops/linear_logp/cuda/job.h"
#include "ops/linear_logp/node.h"

namespace isobit::linear_logp::cuda {

constexpr uint32_t kHasExponent = 0x80000000u;

template <bool kEntropy>
__device__ __forceinline__ void store_slot(const Partials& partials, int64_t slot, int64_t row, const Node& node) {
  const int64_t at = slot * partials.slot_stride + row * partials.row_stride;
  partials.sums[at] = numerics::float_bits(node.s) | (node.r != 0 ? kHasExponent : 0u);
  if (node.r != 0) partials.exponents[at] = node.r;
  if constexpr (kEntropy) partials.weighted[at] = node.q;
}

// store_slot for a call that decides at run time whether there is entropy, unless its mode already says so.
template <Mode kMode>
__device__ __forceinline__ void store_slot_of(const Partials& partials, int64_t slot, int64_t row, const Node& node) {
  if (kMode == Mode::kEntropy || (kMode == Mode::kFull && partials.weighted != nullptr)) {
    store_slot<true>(partials, slot, row, node);
  } else {
    store_slot<false>(partials, slot, row, node);
  }
}

// Eight slots whose words are on their way: the loads of all children of a node are issued before the first is used.
template <bool kEntropy>
__device__ __forceinline__ Node read_slot(const Partials& partials, int64_t slot, int64_t row, uint32_t word) {
  const int64_t at = slot * partials.slot_stride + row * partials.row_stride;
  return {(word & kHasExponent) != 0 ? partials.exponents[at] : 0, numerics::bits_float(word & ~kHasExponent),
          kEntropy ? partials.weighted[at] : 0.0f};
}

// A node that stands in for that of a slot; slot -1: for none.
struct Substitute {
  int32_t slot;
  Node node;
};

// The node of level 1 (up to eight leaves, ascending) of which `count` leaves exist, the first being number `leaf`;
// units_of_last says how many units the last of them has.
template <bool kEntropy>
__device__ __forceinline__ Node chain_leaves(const Partials& partials, int32_t leaf, int count, int units_of_last,
                                             int64_t row, const Substitute& substitute = {-1, identity_node()}) {
  constexpr int kChildren = static_cast<int>(kFanOut);
  uint32_t word[kChildren][2];
  int32_t slot[kChildren];
  bool two[kChildren];
  // slot_of_leaf and slots_of_leaf of one leaf after the other: of three neighbours the second has two slots.
  int32_t next = slot_of_leaf(partials.kind, leaf);
  int32_t third = partials.kind == SlotKind::kTriple ? leaf % 3 : 3;
  const uint32_t* address = partials.sums + next * partials.slot_stride + row * partials.row_stride;
#pragma unroll
  for (int i = 0; i < kChildren; ++i) {
    slot[i] = next;
    two[i] = third == 1 && (i < count - 1 || units_of_last == 2);
    word[i][0] = i < count ? device::ptx::load_streaming(address) : 0u;
    word[i][1] = i < count && two[i] ? device::ptx::load_streaming(address + partials.slot_stride) : 0u;
    next += third == 1 ? 2 : 1;
    address += third == 1 ? 2 * partials.slot_stride : partials.slot_stride;
    third = third == 2 ? 0 : third == 3 ? 3 : third + 1;
  }
  uint32_t any = 0;
#pragma unroll
  for (int i = 0; i < kChildren; ++i) any |= word[i][0] | word[i][1];
  if (!kEntropy && (any & kHasExponent) == 0 && substitute.slot < 0) {
    // All exponents are 0, which makes every merge one addition.
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kChildren; ++i) {
      if (i >= count) break;
      float s = numerics::bits_float(word[i][0]);
      if (two[i]) s = numerics::add_rn(s, numerics::bits_float(word[i][1]));
      sum = i == 0 ? s : numerics::add_rn(sum, s);
    }
    return {0, sum, 0.0f};
  }
  const auto node_of = [&](int32_t at, uint32_t sum_bits) {
    return at == substitute.slot ? substitute.node : read_slot<kEntropy>(partials, at, row, sum_bits);
  };
  Node sum = identity_node();
#pragma unroll
  for (int i = 0; i < kChildren; ++i) {
    if (i >= count) break;
    Node node = node_of(slot[i], word[i][0]);
    if (two[i]) node = merge<kEntropy>(node, node_of(slot[i] + 1, word[i][1]));
    sum = i == 0 ? node : merge<kEntropy>(sum, node);
  }
  return sum;
}

}  // namespace isobit::linear_logp::cuda
