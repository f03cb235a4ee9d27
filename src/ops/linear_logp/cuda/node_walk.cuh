// The nodes of a range in ascending order, as first_node of ops/linear_logp/tree.h yields them, in numbers of leaves:
// those fit 32 bits, and what a node is and completes is a matter of shifts.
#pragma once

#include "ops/linear_logp/tree.h"

namespace isobit::linear_logp::cuda {

static_assert(kFanOut == 8);  // three bits a level

struct NodeWalk {
  int32_t leaf;    // the first of the next node
  int32_t end;     // of the range
  int32_t leaves;  // of the vocabulary
  int top;         // level of the row

  // `nodes`: RangeParts::nodes; empty, its borders may be anything.
  __device__ __forceinline__ NodeWalk(IdRange nodes, int64_t vocab)
      : leaf(static_cast<int32_t>(nodes.begin / kLeaf)),
        end(nodes.size() == 0 ? leaf : static_cast<int32_t>((nodes.end + kLeaf - 1) / kLeaf)),
        leaves(static_cast<int32_t>((vocab + kLeaf - 1) / kLeaf)),
        top(row_level(vocab)) {}

  __device__ __forceinline__ bool more() const { return leaf < end; }

  // One past the last existing leaf of the node of a level that holds `leaf`.
  __device__ __forceinline__ int32_t end_of(int level) const {
    const int32_t whole = ((leaf >> (3 * level)) + 1) << (3 * level);
    return whole < leaves ? whole : leaves;
  }

  __device__ __forceinline__ int level() const {
    const int aligned = leaf == 0 ? top : (__ffs(leaf) - 1) / 3;
    int level = aligned < top ? aligned : top;
    while (level > 0 && end_of(level) > end) --level;
    return level;
  }

  // For the node of a level that starts at `leaf`, or one that this completes, seen from the level above.
  __device__ __forceinline__ bool is_first(int level) const { return (leaf >> (3 * level) & 7) == 0; }
  __device__ __forceinline__ bool is_last(int level) const { return end_of(level) == end_of(level + 1); }

  __device__ __forceinline__ void step_over(int level) { leaf = end_of(level); }
};

}  // namespace isobit::linear_logp::cuda
