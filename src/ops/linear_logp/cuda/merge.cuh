// From slots to outputs: the tree above the leaves, one block for Shape::kRows rows.
//
// A round covers kRoundNodes nodes of level 1 (256 of them: 262,144 ids). Every thread makes nodes of level 1 from its
// slots and leaves them in shared memory; there they are chained to levels 2 and 3, and one thread a row carries those
// up to the row. Rounds go in ascending order, so any vocabulary fits. All orders are those of the tree, none depends
// on the block.
#pragma once

#include "device/ptx/synchronize.cuh"
#include "ops/linear_logp/cuda/outputs.cuh"
#include "ops/linear_logp/cuda/slots.cuh"

namespace isobit::linear_logp::cuda {

constexpr int kCarryLevels = kMaxLevel + 1;

// A block of the merge. Several blocks of a multiprocessor overlap loads and tails.
template <int kRows_, int kThreads_, int kBlocks_, int kRoundNodes_>
struct MergeShape {
  static constexpr int kRows = kRows_;
  static constexpr int kThreads = kThreads_;
  static constexpr int kBlocks = kBlocks_;          // of a multiprocessor
  static constexpr int kRoundNodes = kRoundNodes_;  // of level 1; whole nodes of level 3
  static_assert(kRoundNodes % (kFanOut * kFanOut) == 0 && kRoundNodes <= 8 * kFanOut * kFanOut);
};

// nodes[...][row] so that neighbouring threads touch neighbouring words.
template <int kCount, int kRows>
struct NodeArray {
  int32_t r[kCount][kRows];
  float s[kCount][kRows];
  float q[kCount][kRows];
  __device__ __forceinline__ Node get(int i, int row) const { return {r[i][row], s[i][row], q[i][row]}; }
  __device__ __forceinline__ void set(int i, int row, const Node& node) {
    r[i][row] = node.r;
    s[i][row] = node.s;
    q[i][row] = node.q;
  }
};

template <class Shape>
struct MergeShared {
  NodeArray<Shape::kRoundNodes, Shape::kRows> level1;
  NodeArray<Shape::kRoundNodes / kFanOut, Shape::kRows> level2;
  NodeArray<Shape::kRoundNodes / kFanOut / kFanOut, Shape::kRows> level3;
  NodeArray<kCarryLevels, Shape::kRows> carry;  // by level, the chain of the children so far
};

ISOBIT_HD constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Chains `count` nodes, at most eight, from number `first` on. Where all reference exponents are equal, as in almost
// every row, a merge is one addition.
template <bool kEntropy, int kCount, int kRows>
__device__ __forceinline__ Node chain_nodes(const NodeArray<kCount, kRows>& from, int first, int count, int row) {
  constexpr int kFan = static_cast<int>(kFanOut);
  Node child[kFan];
  bool equal = true;
#pragma unroll
  for (int i = 0; i < kFan; ++i) {
    child[i] = from.get(i < count ? first + i : first, row);
    equal = equal && child[i].r == child[0].r;
  }
  Node sum = child[0];
  if (equal) {
#pragma unroll
    for (int i = 1; i < kFan; ++i) {
      sum.s = i < count ? numerics::add_rn(sum.s, child[i].s) : sum.s;
      if (kEntropy) sum.q = i < count ? numerics::add_rn(sum.q, child[i].q) : sum.q;
    }
    return sum;
  }
#pragma unroll 1
  for (int i = 1; i < count; ++i) sum = merge<kEntropy>(sum, from.get(first + i, row));
  return sum;
}

// Chains up to eight nodes of `from` into each of `count / 8` nodes of `to`.
template <bool kEntropy, class Shape, int kRows, int kFrom, int kTo>
__device__ __forceinline__ void chain_level(const NodeArray<kFrom, kRows>& from, NodeArray<kTo, kRows>& to, int count) {
  constexpr int kFan = static_cast<int>(kFanOut);
  const int row = threadIdx.x % kRows;
  for (int node = threadIdx.x / kRows; node < (count + kFan - 1) / kFan; node += Shape::kThreads / kRows) {
    const int children = count - node * kFan < kFan ? count - node * kFan : kFan;
    to.set(node, row, chain_nodes<kEntropy>(from, node * kFan, children, row));
  }
  __syncthreads();
}

// Gives a complete node to the chain above it, and that chain to the next one when it is complete.
template <bool kEntropy, int kRows>
__device__ __forceinline__ void carry_up(NodeArray<kCarryLevels, kRows>& carry, int row, NodeId id, Node value,
                                         int64_t vocab) {
  const int top = row_level(vocab) > id.level ? row_level(vocab) : id.level;
  while (id.level < top) {
    if (!is_first_child(id)) value = merge<kEntropy>(carry.get(id.level + 1, row), value);
    carry.set(id.level + 1, row, value);
    if (!is_last_child(id, vocab)) return;
    id = parent(id);
  }
  carry.set(kCarryLevels - 1, row, value);  // the row: no chain ends at the highest level before the row does
}

// The outputs of the block's rows from their values, and what the top list needs of them. `first` is the row's first
// target for threads that have a row.
template <class Shape>
__device__ __forceinline__ void write_rows(const Job& job, const NodeArray<kCarryLevels, Shape::kRows>& carry,
                                           int64_t first_row, const RowTargets& targets, const Target& first) {
  const Params& p = job.p;
  const int64_t row = first_row + threadIdx.x;
  if (threadIdx.x < Shape::kRows && row < p.rows) {
    const Node node = carry.get(kCarryLevels - 1, threadIdx.x);
    const RowSum sum = row_sum(node);
    write_row(p, row, targets, sum, node);
    write_target(p, row, 0, sum, first);
    if (job.top.row_s != nullptr) {
      job.top.row_r[row] = node.r;
      job.top.row_s[row] = node.s;
    }
  }
  const int64_t pairs = Shape::kRows * (p.targets - 1);
  for (int64_t i = threadIdx.x; i < pairs; i += Shape::kThreads) {
    const int here = static_cast<int>(i % Shape::kRows);
    const int64_t at = first_row + here;
    const int64_t k = 1 + i / Shape::kRows;
    if (at >= p.rows) continue;
    Target target = find_target(p, at, k);
    load_target(job, at, k, &target);
    write_target(p, at, k, row_sum(carry.get(kCarryLevels - 1, here)), target);
  }
}

// The nodes of the block's rows, left in the carry's highest level; `row` is that of the thread's slots, in which
// `substitute` stands for one.
template <bool kEntropy, class Shape>
__device__ __forceinline__ void merge_slots(const Job& job, MergeShared<Shape>& shared, int64_t row,
                                            const Substitute& substitute) {
  constexpr int kRows = Shape::kRows;
  const Params& p = job.p;
  const int row_here = threadIdx.x % kRows;
  const auto leaves = static_cast<int32_t>(divide_up(p.vocab, kLeaf));
  const auto nodes = static_cast<int32_t>(divide_up(leaves, kFanOut));
  const int units_of_last = static_cast<int>(divide_up(p.vocab - (leaves - 1) * kLeaf, kUnit));
  for (int32_t first = 0; first < nodes; first += Shape::kRoundNodes) {
    const int count = nodes - first < Shape::kRoundNodes ? nodes - first : Shape::kRoundNodes;
    for (int node = threadIdx.x / kRows; node < count; node += Shape::kThreads / kRows) {
      const int32_t leaf = (first + node) * static_cast<int32_t>(kFanOut);
      const int children = leaves - leaf < kFanOut ? leaves - leaf : static_cast<int>(kFanOut);
      Node value = identity_node();
      if (row < p.rows) {
        value = chain_leaves<kEntropy>(job.partials, leaf, children, leaf + children == leaves ? units_of_last : 2, row,
                                       substitute);
      }
      shared.level1.set(node, row_here, value);
    }
    __syncthreads();
    chain_level<kEntropy, Shape>(shared.level1, shared.level2, count);
    chain_level<kEntropy, Shape>(shared.level2, shared.level3, static_cast<int>(divide_up(count, kFanOut)));
    const int count3 = static_cast<int>(divide_up(count, kFanOut * kFanOut));
    if (threadIdx.x < kRows && nodes <= Shape::kRoundNodes) {
      // One node of level 4 at most.
      shared.carry.set(kCarryLevels - 1, row_here, chain_nodes<kEntropy>(shared.level3, 0, count3, row_here));
    } else if (threadIdx.x < kRows) {
      const int64_t first3 = first / (kFanOut * kFanOut);
#pragma unroll 1
      for (int i = 0; i < count3; ++i) {
        carry_up<kEntropy, kRows>(shared.carry, row_here, {3, first3 + i}, shared.level3.get(i, row_here), p.vocab);
      }
    }
    __syncthreads();
  }
}

// What the backward pass wants to know of the rows whose nodes are in the carry. Leads take a second merge, without
// their logits; cuda/others.cuh has left the slots that differ.
template <class Shape>
__device__ __forceinline__ void save_rows(const Job& job, MergeShared<Shape>& shared, int64_t row) {
  constexpr int kTop = kCarryLevels - 1;
  const int row_here = threadIdx.x % Shape::kRows;
  const bool valid = row < job.p.rows && row_state(job.p, row) == RowState::kValid;
  RowRecord record = idle_record();
  if (valid) record.row = shared.carry.get(kTop, row_here);
  if (job.lead_leaf != nullptr) {
    if (valid) record.lead = job.saved.lead[row];
    Substitute others{-1, identity_node()};
    if (record.lead >= 0) {
      others = {slot_of_id(job.partials.kind, record.lead - job.origin),
                {job.saved.others_r[row], job.saved.others_s[row], 0.0f}};
    }
    __syncthreads();  // everybody has the row's node
    merge_slots<false>(job, shared, row, others);
    if (record.lead >= 0) record.others = shared.carry.get(kTop, row_here);
  }
  if (threadIdx.x < Shape::kRows && row < job.p.rows) store_record(job.saved, row, record);
}

template <bool kEntropy, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks) merge_rows(const __grid_constant__ Job job) {
  __shared__ MergeShared<Shape> shared;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * Shape::kRows;
  const int64_t row = first_row + threadIdx.x % Shape::kRows;
  // Targets are inputs of the call and can be read before the slots are ready; their logits come while slots do.
  RowTargets targets{};
  Target target{};
  const bool has_row = threadIdx.x < Shape::kRows && row < job.p.rows;
  if (has_row) {
    targets = inspect_targets(job.p, row);
    target = find_target(job.p, row, 0);
  }
  device::ptx::wait_for_previous_grid();
  if (has_row) load_target(job, row, 0, &target);
  merge_slots<kEntropy>(job, shared, row, {-1, identity_node()});
  write_rows<Shape>(job, shared.carry, first_row, targets, target);
  if (job.saved.r != nullptr) save_rows(job, shared, row);
}

}  // namespace isobit::linear_logp::cuda
