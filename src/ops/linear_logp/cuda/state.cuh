// Shard states: from slots to the complete nodes of a range; docs/bit-contract.md section 3.5. merge_states.cuh has the
// way back.
#pragma once

#include "ops/linear_logp/cuda/merge.cuh"
#include "ops/linear_logp/cuda/state.h"

namespace isobit::linear_logp::cuda {

constexpr int kPublishRows = 8;
constexpr int kPublishThreads = 256;

// The value of one complete node of any level from its leaves' slots.
template <bool kEntropy>
__device__ __forceinline__ Node reduce_node(const Job& job, NodeId node, int64_t row) {
  const int64_t vocab = job.p.vocab;
  const auto begin = static_cast<int32_t>(node_begin(node) / kLeaf);
  const auto end = static_cast<int32_t>(divide_up(node_end(node, vocab), kLeaf));
  const auto origin = static_cast<int32_t>(job.origin / kLeaf);
  Node chain[kMaxLevel + 1];
  Node value = identity_node();
  for (int32_t leaf = begin; leaf < end; leaf += static_cast<int32_t>(kFanOut)) {
    const int children = end - leaf < kFanOut ? end - leaf : static_cast<int>(kFanOut);
    const int64_t last_ids = node_end({0, leaf + children - 1}, vocab) - int64_t{leaf + children - 1} * kLeaf;
    value = chain_leaves<kEntropy>(job.partials, leaf - origin, children, static_cast<int>(divide_up(last_ids, kUnit)),
                                   row);
    NodeId id{1, leaf / kFanOut};
    bool complete = true;
#pragma unroll
    for (int level = 2; level <= kMaxLevel; ++level) {
      if (!complete || level > node.level) continue;
      chain[level] = is_first_child(id) ? value : merge<kEntropy>(chain[level], value);
      value = chain[level];
      complete = is_last_child(id, vocab);
      id = parent(id);
    }
  }
  return value;
}

template <bool kEntropy>
__global__ void __launch_bounds__(kPublishThreads, 1)
    publish_nodes(const __grid_constant__ Job job, const __grid_constant__ NodeOutput output) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kPublishRows + threadIdx.x % kPublishRows;
  constexpr int kGroups = kPublishThreads / kPublishRows;
  device::ptx::wait_for_previous_grid();
  if (row >= job.p.rows) return;
  IdRange rest = job.parts.nodes;
  for (int64_t slot = 0; rest.begin < rest.end; ++slot) {
    const NodeId node = first_node(rest, job.p.vocab);
    rest.begin = node_end(node, job.p.vocab);
    if (slot % kGroups != threadIdx.x / kPublishRows) continue;
    // Nothing of an ignored row leaves the shard.
    const Node value = is_ignored_row(job.p, row) ? identity_node() : reduce_node<kEntropy>(job, node, row);
    const int64_t at = slot * output.slot_stride + row;
    output.r[at] = value.r;
    output.s[at] = numerics::canonical_nan(value.s);
    if constexpr (kEntropy) output.q[at] = numerics::canonical_nan(value.q);
  }
}

}  // namespace isobit::linear_logp::cuda
