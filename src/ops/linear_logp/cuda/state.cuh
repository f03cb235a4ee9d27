// Shard states: from slots to the complete nodes of a range, and from the states of all ranges to the outputs;
// docs/bit-contract.md section 3.5.
#pragma once

#include "ops/linear_logp/cuda/merge.cuh"
#include "ops/linear_logp/cuda/state.h"

namespace isobit::linear_logp::cuda {

// ---- a shard publishes
// -----------------------------------------------------------------------------------------------

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

// ---- all shards are merged
// ---------------------------------------------------------------------------------------------

constexpr int kStateWarps = 4;  // one row each

__device__ __forceinline__ int owner(const ShardList& list, int64_t id) {
  int i = 0;
  while (id >= list.shard[i].ids.end) ++i;
  return i;
}

template <class T>
__device__ __forceinline__ T state_at(const Shard& shard, int64_t array, int64_t rows, int64_t slot, int64_t row) {
  return reinterpret_cast<const T*>(shard.data + array)[slot * rows + row];
}

// The leaf at `begin`, part of whose logits each of several shards has.
template <bool kEntropy>
__device__ __forceinline__ Node shared_leaf(const Params& p, const ShardList& list, int64_t begin, int64_t row) {
  float z[4];
  bool exists[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t id = begin + leaf_offset(threadIdx.x % kWarpThreads) + 32 * i;
    exists[i] = id < p.vocab;
    z[i] = 0.0f;
    if (!exists[i]) continue;
    const Shard& shard = list.shard[owner(list, id)];
    z[i] = state_at<float>(shard, 0, p.rows, raw_slot(range_parts(shard.ids, p.vocab), id), row);
  }
  return warp_leaf<kEntropy>(z, exists);
}

template <bool kEntropy>
__global__ void __launch_bounds__(kStateWarps* kWarpThreads)
    merge_states(const __grid_constant__ Params p, const __grid_constant__ ShardList list) {
  __shared__ NodeArray<kCarryLevels, kStateWarps> carry;
  const int warp = threadIdx.x / kWarpThreads;
  const int lane = threadIdx.x % kWarpThreads;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kStateWarps + warp;
  if (row >= p.rows) return;

  int current = -1;
  int64_t slot = 0;
  StateLayout layout{};
  for (int64_t id = 0; id < p.vocab;) {
    const int shard = owner(list, id);
    if (shard != current) {
      current = shard;
      slot = 0;
      layout = state_layout(list.shard[shard].ids, p.vocab, p.rows, p.targets, kEntropy, p.wants_rank);
    }
    const RangeParts parts = range_parts(list.shard[shard].ids, p.vocab);
    NodeId node{0, id / kLeaf};
    Node value;
    if (id >= parts.nodes.begin && id < parts.nodes.end) {
      node = first_node({id, parts.nodes.end}, p.vocab);
      value.r = state_at<int32_t>(list.shard[shard], layout.r, p.rows, slot, row);
      value.s = state_at<float>(list.shard[shard], layout.s, p.rows, slot, row);
      value.q = kEntropy ? state_at<float>(list.shard[shard], layout.q, p.rows, slot, row) : 0.0f;
      ++slot;
    } else {
      value = shared_leaf<kEntropy>(p, list, id, row);
    }
    if (lane == 0) carry_up<kEntropy, kStateWarps>(carry, warp, node, value, p.vocab);
    id = node_end(node, p.vocab);
  }
  __syncwarp();

  const Node sum = carry.get(kCarryLevels - 1, warp);
  const RowSum total = row_sum(sum);
  const RowTargets targets = inspect_targets(p, row);
  if (lane == 0) write_row(p, row, targets, total, sum);
  if (lane == 0 && p.saves) {
    const bool idle = targets.ignored || targets.outside;
    store_record(saved_arrays(p.saved, p.rows), row, idle ? idle_record() : RowRecord{sum, identity_node(), -1});
  }
  for (int64_t k = lane; k < p.targets; k += kWarpThreads) {
    const int64_t target = target_at(p, row, k);
    Target found = find_target(p, row, k);
    for (int i = 0; i < list.count; ++i) {
      const Shard& shard = list.shard[i];
      const StateLayout state = state_layout(shard.ids, p.vocab, p.rows, p.targets, kEntropy, p.wants_rank);
      const bool here = target >= shard.ids.begin && target < shard.ids.end;
      if (here) found.z = state_at<float>(shard, state.target_logit, p.rows, k, row);
      if (p.wants_rank) found.rank += state_at<int32_t>(shard, state.rank, p.rows, k, row);
    }
    write_target(p, row, k, total, found);
  }
}

}  // namespace isobit::linear_logp::cuda
