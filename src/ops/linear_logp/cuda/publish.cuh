// Shard states: from slots to the complete nodes of a range; docs/bit-contract.md section 3.5. merge_states.cuh has the
// way back.
//
// The tree above the leaves as in merge.cuh, with rounds that start at multiples of Shape::kRoundNodes nodes of level
// 1, so that what is complete in the range is complete in a round, up to level 3. Nodes above chain those of level 3.
// (One thread a node and row took 640 us for a whole vocabulary of 151,936 and 64 rows, H200, 2026-11-30.)
#pragma once

#include "ops/linear_logp/cuda/merge.cuh"
#include "ops/linear_logp/cuda/node_walk.cuh"
#include "ops/linear_logp/cuda/state.h"

namespace isobit::linear_logp::cuda {

constexpr int kRoundLevel = 3;                       // the highest of a round
constexpr int kMostNodes = 2 * 7 * (kMaxLevel + 1);  // of a range: seven a level on the way up and on the way down

// The nodes that a range publishes; node i goes to slot i.
struct PublishList {
  int32_t leaf[kMostNodes];  // its first
  int32_t level[kMostNodes];
  int32_t count;
  int32_t begin, end;  // nodes of level 1 that are in one of level 1 or above
};

template <class Shape>
struct PublishShared {
  MergeShared<Shape> nodes;
  PublishList list;
};

__device__ __forceinline__ void list_nodes(const Job& job, PublishList& list) {
  list.count = list.begin = list.end = 0;
  for (NodeWalk walk(job.parts.nodes, job.p.vocab); walk.more();) {
    const int level = walk.level();
    list.leaf[list.count] = walk.leaf;
    list.level[list.count++] = level;
    if (level > 0 && list.end == 0) list.begin = walk.leaf / static_cast<int32_t>(kFanOut);
    walk.step_over(level);
    if (level > 0) list.end = static_cast<int32_t>(divide_up(walk.leaf, kFanOut));
  }
}

// The chain of `count` leaves from number `leaf` on; of one leaf, that leaf.
template <bool kEntropy>
__device__ __forceinline__ Node chain_range(const Job& job, int32_t leaf, int count, int64_t row) {
  const auto origin = static_cast<int32_t>(job.origin / kLeaf);
  const int64_t last_ids = node_end({0, leaf + count - 1}, job.p.vocab) - int64_t{leaf + count - 1} * kLeaf;
  return chain_leaves<kEntropy>(job.partials, leaf - origin, count, static_cast<int>(divide_up(last_ids, kUnit)), row);
}

// Node `slot` of a row, from the row's slots or from a round's levels.
template <bool kEntropy>
__device__ __forceinline__ void publish_node(const NodeOutput& output, int slot, int64_t row, const Node& value) {
  const int64_t at = slot * output.slot_stride + row;
  output.r[at] = value.r;
  output.s[at] = numerics::canonical_nan(value.s);
  if constexpr (kEntropy) output.q[at] = numerics::canonical_nan(value.q);
}

// Levels 1 to 3 of a round: `count` nodes of level 1 from number `first` on.
template <bool kEntropy, class Shape>
__device__ __forceinline__ void make_round(const Job& job, PublishShared<Shape>& shared, int32_t first, int count,
                                           int64_t row, bool used) {
  constexpr int kRows = Shape::kRows;
  const auto leaves = static_cast<int32_t>(divide_up(job.p.vocab, kLeaf));
  for (int node = threadIdx.x / kRows; node < count; node += Shape::kThreads / kRows) {
    const int32_t leaf = (first + node) * static_cast<int32_t>(kFanOut);
    const int children = leaves - leaf < kFanOut ? leaves - leaf : static_cast<int>(kFanOut);
    Node value = identity_node();
    if (used && first + node >= shared.list.begin) value = chain_range<kEntropy>(job, leaf, children, row);
    shared.nodes.level1.set(node, threadIdx.x % kRows, value);
  }
  __syncthreads();
  chain_level<kEntropy, Shape>(shared.nodes.level1, shared.nodes.level2, count);
  chain_level<kEntropy, Shape>(shared.nodes.level2, shared.nodes.level3, static_cast<int>(divide_up(count, kFanOut)));
}

// Published nodes of levels 1 to 3 that are in the round.
template <bool kEntropy, class Shape>
__device__ __forceinline__ void publish_round(const PublishShared<Shape>& shared, const NodeOutput& output,
                                              int32_t first, int count, int64_t row) {
  constexpr int kRows = Shape::kRows;
  const int row_here = threadIdx.x % kRows;
  for (int slot = threadIdx.x / kRows; slot < shared.list.count; slot += Shape::kThreads / kRows) {
    const int level = shared.list.level[slot];
    const int32_t node1 = shared.list.leaf[slot] / static_cast<int32_t>(kFanOut) - first;
    if (level == 0 || level > kRoundLevel || node1 < 0 || node1 >= count) continue;
    const int at = node1 >> (3 * (level - 1));
    publish_node<kEntropy>(output, slot, row,
                           level == 1   ? shared.nodes.level1.get(at, row_here)
                           : level == 2 ? shared.nodes.level2.get(at, row_here)
                                        : shared.nodes.level3.get(at, row_here));
  }
}

// Chains the round's nodes of level 3 into the published nodes above; a thread a row.
template <bool kEntropy, class Shape>
__device__ __forceinline__ void climb_round(const Job& job, PublishShared<Shape>& shared, const NodeOutput& output,
                                            int32_t first, int count, int64_t row) {
  constexpr int32_t kLeaves3 = 1 << (3 * kRoundLevel);
  const int row_here = threadIdx.x % Shape::kRows;
  NodeWalk walk(job.parts.nodes, job.p.vocab);
  for (int slot = 0; slot < shared.list.count; ++slot) {
    const int level = shared.list.level[slot];
    if (level <= kRoundLevel) continue;
    walk.leaf = shared.list.leaf[slot];
    const int32_t end = walk.end_of(level);
    for (int i = 0; i < divide_up(count, kFanOut * kFanOut); ++i) {
      walk.leaf = first * static_cast<int32_t>(kFanOut) + i * kLeaves3;
      if (walk.leaf < shared.list.leaf[slot] || walk.leaf >= end) continue;
      Node value = shared.nodes.level3.get(i, row_here);
      bool complete = true;
      for (int at = kRoundLevel; complete && at < level; ++at) {
        if (!walk.is_first(at)) value = merge<kEntropy>(shared.nodes.carry.get(at + 1, row_here), value);
        shared.nodes.carry.set(at + 1, row_here, value);
        complete = walk.is_last(at);
      }
      if (complete) publish_node<kEntropy>(output, slot, row, value);
    }
  }
}

template <bool kEntropy, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    publish_nodes(const __grid_constant__ Job job, const __grid_constant__ NodeOutput output) {
  __shared__ PublishShared<Shape> shared;
  constexpr int kRows = Shape::kRows;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x % kRows;
  if (threadIdx.x == 0) list_nodes(job, shared.list);
  device::ptx::wait_for_previous_grid();
  __syncthreads();
  const bool exists = row < job.p.rows;
  const bool used = exists && !is_ignored_row(job.p, row);  // nothing of an ignored row leaves the shard
  for (int slot = threadIdx.x / kRows; exists && slot < shared.list.count; slot += Shape::kThreads / kRows) {
    if (shared.list.level[slot] > 0) continue;
    publish_node<kEntropy>(output, slot, row,
                           used ? chain_range<kEntropy>(job, shared.list.leaf[slot], 1, row) : identity_node());
  }
  for (int32_t first = shared.list.begin / Shape::kRoundNodes * Shape::kRoundNodes; first < shared.list.end;
       first += Shape::kRoundNodes) {
    const int left = shared.list.end - first;
    const int count = left < Shape::kRoundNodes ? left : Shape::kRoundNodes;
    make_round<kEntropy, Shape>(job, shared, first, count, row, used);
    if (exists) publish_round<kEntropy, Shape>(shared, output, first, count, row);
    if (exists && threadIdx.x < kRows) climb_round<kEntropy, Shape>(job, shared, output, first, count, row);
    __syncthreads();  // the next round's nodes take the place of these
  }
}

}  // namespace isobit::linear_logp::cuda
