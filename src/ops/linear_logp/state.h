// Layout of a shard's state in memory; docs/bit-contract.md section 3.5.
#pragma once

#include "ops/linear_logp/tree.h"

namespace isobit::linear_logp {

// Arrays of 4-byte elements, each [slot][row]; offsets in bytes.
struct StateLayout {
  int64_t rows;
  int64_t raw_slots;   // logits of incomplete border leaves
  int64_t node_slots;  // complete nodes
  int64_t targets;
  int64_t raw;
  int64_t r, s;
  int64_t q;  // equal to target_logit without entropy
  int64_t target_logit;
  int64_t rank;  // equal to bytes without rank
  int64_t bytes;
};

ISOBIT_HD constexpr int64_t state_array_bytes(int64_t slots, int64_t rows) { return (slots * rows * 4 + 15) / 16 * 16; }

// `nodes`: how many there are of parts.nodes.
ISOBIT_HD constexpr StateLayout state_layout(const RangeParts& parts, int64_t nodes, int64_t rows, int64_t targets,
                                             bool entropy, bool rank) {
  StateLayout layout{};
  layout.rows = rows;
  layout.raw_slots = parts.raw_ids();
  layout.node_slots = nodes;
  layout.targets = targets;
  layout.r = state_array_bytes(layout.raw_slots, rows);
  const int64_t node_bytes = state_array_bytes(layout.node_slots, rows);
  layout.s = layout.r + node_bytes;
  layout.q = layout.s + node_bytes;
  layout.target_logit = layout.q + (entropy ? node_bytes : 0);
  const int64_t target_bytes = state_array_bytes(targets, rows);
  layout.rank = layout.target_logit + target_bytes;
  layout.bytes = layout.rank + (rank ? target_bytes : 0);
  return layout;
}

ISOBIT_HD constexpr StateLayout state_layout(IdRange shard, int64_t vocab, int64_t rows, int64_t targets, bool entropy,
                                             bool rank) {
  const RangeParts parts = range_parts(shard, vocab);
  return state_layout(parts, count_nodes(parts.nodes, vocab), rows, targets, entropy, rank);
}

// Slot of the raw logit of id, which lies in parts.front or parts.back.
ISOBIT_HD constexpr int64_t raw_slot(const RangeParts& parts, int64_t id) {
  return id < parts.front.end ? id - parts.front.begin : parts.front.size() + id - parts.back.begin;
}

// The arrays of a state. Element [slot][row] is at slot * layout.rows + row.
struct StateArrays {
  float* raw;
  int32_t* r;
  float* s;
  float* q;
  float* target_logit;
  int32_t* rank;
};

inline StateArrays state_arrays(const StateLayout& layout, void* state) {
  char* const begin = static_cast<char*>(state);
  return {reinterpret_cast<float*>(begin + layout.raw),
          reinterpret_cast<int32_t*>(begin + layout.r),
          reinterpret_cast<float*>(begin + layout.s),
          reinterpret_cast<float*>(begin + layout.q),
          reinterpret_cast<float*>(begin + layout.target_logit),
          reinterpret_cast<int32_t*>(begin + layout.rank)};
}

}  // namespace isobit::linear_logp
