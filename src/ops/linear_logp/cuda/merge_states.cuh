// From the states of all shards to the outputs; docs/bit-contract.md section 3.5.
//
// A thread has a row, neighbouring threads neighbouring rows, as the states' arrays have them. What is the same for all
// rows, which nodes there are and what each of them completes, is worked out once a block: with a warp a row, each
// doing that for itself, 8,192 rows took 195 us at 2 shards and 1.3 ms at 16 (H200, 2026-11-30).
#pragma once

#include "ops/linear_logp/cuda/merge.cuh"
#include "ops/linear_logp/cuda/node_walk.cuh"
#include "ops/linear_logp/cuda/state.h"

namespace isobit::linear_logp::cuda {

constexpr int kStateRows = 64;  // of a block
constexpr int kPlanSteps = 512;
constexpr int kStepBatch = 8;  // whose loads are issued together
constexpr uint32_t kRawLeaf = 0x80000000u;

// A node that becomes part of the row: the one in `slot` of a shard's state, or the leaf of that number, whose logits
// the shards around it share.
struct MergeStep {
  uint32_t slot;  // with kRawLeaf: a leaf's number
  uint8_t shard;
  uint8_t level;
  uint8_t climbs;  // nodes above that it continues, all but the last of which it completes
  uint8_t merges;  // bit i: the i-th of them has lower ids already
};
static_assert(kMaxShards <= 256 && kMaxLevel <= 8);

struct StatePlan {
  // Element [0][0] of every shard's arrays.
  const float* raw[kMaxShards];
  const int32_t* r[kMaxShards];
  const float* s[kMaxShards];
  const float* q[kMaxShards];
  const float* target_logit[kMaxShards];
  const int32_t* rank[kMaxShards];
  int32_t step_count[kMaxShards];
  MergeStep step[kPlanSteps];
};
// A shard has at most seven nodes a level on its way up and on its way down, and a raw leaf.
static_assert(2 * 7 * (kMaxLevel + 1) + 1 <= kPlanSteps);

// Of the node of a level that starts at walk.leaf.
__device__ __forceinline__ MergeStep make_step(const NodeWalk& walk, int level, uint32_t slot, int shard) {
  MergeStep step{slot, static_cast<uint8_t>(shard), static_cast<uint8_t>(level), 0, 0};
  bool complete = true;
  for (int at = level; complete && at < walk.top; ++at) {
    if (!walk.is_first(at)) step.merges |= static_cast<uint8_t>(1u << step.climbs);
    ++step.climbs;
    complete = walk.is_last(at);
  }
  return step;
}

// A thread a shard.
__device__ __forceinline__ void describe_shards(const Params& p, const ShardList& list, bool entropy, StatePlan& plan) {
  for (int i = threadIdx.x; i < list.count; i += kStateRows) {
    const Shard& shard = list.shard[i];
    const RangeParts parts = range_parts(shard.ids, p.vocab);
    int32_t nodes = 0;
    for (NodeWalk walk(parts.nodes, p.vocab); walk.more(); ++nodes) walk.step_over(walk.level());
    const StateLayout at = state_layout(parts, nodes, p.rows, p.targets, entropy, p.wants_rank);
    plan.raw[i] = reinterpret_cast<const float*>(shard.data);
    plan.r[i] = reinterpret_cast<const int32_t*>(shard.data + at.r);
    plan.s[i] = reinterpret_cast<const float*>(shard.data + at.s);
    plan.q[i] = reinterpret_cast<const float*>(shard.data + at.q);
    plan.target_logit[i] = reinterpret_cast<const float*>(shard.data + at.target_logit);
    plan.rank[i] = reinterpret_cast<const int32_t*>(shard.data + at.rank);
    // A leaf that several shards share is a step of the one that has its first id.
    plan.step_count[i] = nodes + (parts.back.size() > 0 ? 1 : 0);
  }
  __syncthreads();
}

// Steps of the shards [first, last), in order.
__device__ __forceinline__ void write_steps(const Params& p, const ShardList& list, int first, int last,
                                            StatePlan& plan) {
  for (int i = first + static_cast<int>(threadIdx.x); i < last; i += kStateRows) {
    int at = 0;
    for (int before = first; before < i; ++before) at += plan.step_count[before];
    const RangeParts parts = range_parts(list.shard[i].ids, p.vocab);
    uint32_t slot = 0;
    NodeWalk walk(parts.nodes, p.vocab);
    while (walk.more()) {
      const int level = walk.level();
      plan.step[at++] = make_step(walk, level, slot++, i);
      walk.step_over(level);
    }
    if (parts.back.size() == 0) continue;
    walk.leaf = static_cast<int32_t>(parts.back.begin / kLeaf);
    plan.step[at] = make_step(walk, 0, kRawLeaf | static_cast<uint32_t>(walk.leaf), i);
  }
  __syncthreads();
}

// As many shards from `first` on as the plan has room for, and their steps.
struct ShardGroup {
  int last, steps;
};
__device__ __forceinline__ ShardGroup group_from(const StatePlan& plan, int first, int count) {
  ShardGroup group{first, 0};
  while (group.last < count && group.steps + plan.step_count[group.last] <= kPlanSteps) {
    group.steps += plan.step_count[group.last++];
  }
  return group;
}

// The leaf whose logits several shards have, of every row of the warp; each lane gets its own row's.
template <bool kEntropy>
__device__ __forceinline__ Node shared_leaf(const Params& p, const ShardList& list, const StatePlan& plan,
                                            const MergeStep& step, int64_t row) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const float* logit_of_row_0[4];
  bool exists[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t id = static_cast<int64_t>(step.slot & ~kRawLeaf) * kLeaf + leaf_offset(lane) + 32 * i;
    exists[i] = id < p.vocab;
    int shard = step.shard;
    while (exists[i] && id >= list.shard[shard].ids.end) ++shard;
    logit_of_row_0[i] =
        exists[i] ? plan.raw[shard] + raw_slot(range_parts(list.shard[shard].ids, p.vocab), id) * p.rows : nullptr;
  }
  Node mine = identity_node();
#pragma unroll 2
  for (int other = 0; other < kWarpThreads; ++other) {
    const int64_t of_row = row - lane + other;
    if (of_row >= p.rows) break;  // of all lanes
    float z[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) z[i] = exists[i] ? logit_of_row_0[i][of_row] : 0.0f;
    const Node leaf = warp_leaf<kEntropy>(z, exists);
    if (other == lane) mine = leaf;
  }
  return mine;
}

using StateCarry = NodeArray<kMaxLevel + 1, kStateRows>;  // by level, the chain of the children so far

// Gives a node to the chains above it. The last step's result is the row.
template <bool kEntropy>
__device__ __forceinline__ Node climb(const MergeStep& step, Node value, StateCarry& carry) {
  const int row = static_cast<int>(threadIdx.x);
  for (int i = 0; i < step.climbs; ++i) {
    if ((step.merges >> i & 1) != 0) value = merge<kEntropy>(carry.get(step.level + 1 + i, row), value);
  }
  if (step.climbs > 0) carry.set(step.level + step.climbs, row, value);
  return value;
}

// Nodes of steps whose loads are on their way: up to kStepBatch, or up to the next raw leaf.
struct StepBatch {
  Node node[kStepBatch];
  int count = 0;
};
template <bool kEntropy>
__device__ __forceinline__ StepBatch load_steps(const Params& p, const StatePlan& plan, int at, int steps,
                                                int64_t row) {
  StepBatch batch;
#pragma unroll
  for (int i = 0; i < kStepBatch; ++i) {
    batch.node[i] = identity_node();
    if (batch.count < i || at + i >= steps) continue;
    const MergeStep step = plan.step[at + i];
    if ((step.slot & kRawLeaf) != 0) continue;
    ++batch.count;
    if (row >= p.rows) continue;
    const int64_t element = static_cast<int64_t>(step.slot) * p.rows + row;
    batch.node[i] = {plan.r[step.shard][element], plan.s[step.shard][element],
                     kEntropy ? plan.q[step.shard][element] : 0.0f};
  }
  return batch;
}

// Takes the plan's steps into the carry; `last` is the value that the step before left. A batch's loads are issued
// before the one before it climbs.
template <bool kEntropy>
__device__ __forceinline__ Node take_steps(const Params& p, const ShardList& list, const StatePlan& plan, int steps,
                                           int64_t row, Node last, StateCarry& carry) {
  StepBatch next = load_steps<kEntropy>(p, plan, 0, steps, row);
  for (int at = 0; at < steps;) {
    const StepBatch batch = next;
    const bool raw = batch.count < kStepBatch && at + batch.count < steps;
    const int begin = at;
    at += batch.count + (raw ? 1 : 0);
    next = load_steps<kEntropy>(p, plan, at, steps, row);
#pragma unroll
    for (int i = 0; i < kStepBatch; ++i) {
      if (i < batch.count) last = climb<kEntropy>(plan.step[begin + i], batch.node[i], carry);
    }
    if (!raw) continue;
    const MergeStep leaf = plan.step[at - 1];
    last = climb<kEntropy>(leaf, shared_leaf<kEntropy>(p, list, plan, leaf, row), carry);
  }
  return last;
}

__device__ __forceinline__ Target merged_target(const Params& p, const ShardList& list, const StatePlan& plan,
                                                int64_t row, int64_t k) {
  const int64_t target = target_at(p, row, k);
  Target found = find_target(p, row, k);
  for (int i = 0; i < list.count; ++i) {
    const bool here = target >= list.shard[i].ids.begin && target < list.shard[i].ids.end;
    if (here) found.z = plan.target_logit[i][k * p.rows + row];
    if (p.wants_rank) found.rank += plan.rank[i][k * p.rows + row];
  }
  return found;
}

template <bool kEntropy>
__global__ void __launch_bounds__(kStateRows)
    merge_states(const __grid_constant__ Params p, const __grid_constant__ ShardList list) {
  __shared__ StatePlan plan;
  __shared__ StateCarry carry;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kStateRows + threadIdx.x;
  describe_shards(p, list, kEntropy, plan);
  Node sum = identity_node();
  for (int first = 0; first < list.count;) {
    const ShardGroup group = group_from(plan, first, list.count);
    write_steps(p, list, first, group.last, plan);
    sum = take_steps<kEntropy>(p, list, plan, group.steps, row, sum, carry);
    __syncthreads();  // the next group's steps take the place of these
    first = group.last;
  }
  if (row >= p.rows) return;
  const RowSum total = row_sum(sum);
  const RowTargets targets = inspect_targets(p, row);
  write_row(p, row, targets, total, sum);
  if (p.saves) {
    const bool idle = targets.ignored || targets.outside;
    store_record(saved_arrays(p.saved, p.rows), row, idle ? idle_record() : RowRecord{sum, identity_node(), -1});
  }
  for (int64_t k = 0; k < p.targets; ++k) write_target(p, row, k, total, merged_target(p, list, plan, row, k));
}

}  // namespace isobit::linear_logp::cuda
