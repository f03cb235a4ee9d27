// The top list of a row from all its logits in memory: T rounds, each of which finds the best id after the one before.
//
// One block a row. Thread t owns the ids t + 1024 i and keeps the best of them that has not been listed; a round
// compares the threads' candidates, and the warp of the winner looks for the winner's next one together. Descending
// logits, equal ones by ascending id, so nothing depends on who owns what.
#pragma once

#include "ops/linear_logp/cuda/outputs.cuh"
#include "ops/linear_logp/cuda/unit_sum.cuh"

namespace isobit::linear_logp::cuda {

constexpr int kTopThreads = 1024;
constexpr int kTopWarps = kTopThreads / kWarpThreads;
static_assert(kTopWarps == kWarpThreads, "one warp compares the candidates of all warps");

struct Candidate {
  float z;
  int32_t id;
};
// Behind every id, those at -inf too.
__device__ __forceinline__ Candidate no_candidate() { return {kMinusInfinity, 0x7FFFFFFF}; }

__device__ __forceinline__ bool ranks_before(const Candidate& a, const Candidate& b) {
  return linear_logp::ranks_before(a.z, a.id, b.z, b.id);
}

// All lanes get it.
__device__ __forceinline__ Candidate best_of_warp(Candidate mine) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    const Candidate other{__shfl_xor_sync(kWarp, mine.z, mask), __shfl_xor_sync(kWarp, mine.id, mask)};
    if (ranks_before(other, mine)) mine = other;
  }
  return mine;
}

// The best of ids first, first + step, ... of those that rank after `last`, or of all.
__device__ __forceinline__ Candidate best_after(const float* z, int64_t vocab, int64_t first, int64_t step, bool all,
                                                const Candidate& last) {
  constexpr int kTogether = 8;  // loads under way
  Candidate best = no_candidate();
  for (int64_t id = first; id < vocab; id += kTogether * step) {
    float value[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) value[i] = id + i * step < vocab ? z[id + i * step] : kMinusInfinity;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (id + i * step >= vocab) break;
      const Candidate candidate{value[i], static_cast<int32_t>(id + i * step)};
      if ((all || ranks_before(last, candidate)) && ranks_before(candidate, best)) best = candidate;
    }
  }
  return best;
}

__global__ void __launch_bounds__(kTopThreads) list_top(const __grid_constant__ Job job) {
  __shared__ Candidate of_warp[2][kTopWarps];
  const Params& p = job.p;
  const int64_t row = blockIdx.x;
  const float* const z = job.top.logits + row * job.top.logits_stride;
  const int warp = threadIdx.x / kWarpThreads;
  const int lane = threadIdx.x % kWarpThreads;
  const RowTargets targets = inspect_targets(p, row);
  const RowSum sum = row_sum({job.top.row_r[row], job.top.row_s[row], 0.0f});

  Candidate mine = best_after(z, p.vocab, threadIdx.x, kTopThreads, true, no_candidate());
  for (int64_t t = 0; t < p.top; ++t) {
    const Candidate best_here = best_of_warp(mine);
    if (lane == 0) of_warp[t % 2][warp] = best_here;
    __syncthreads();  // the other half is free for the next round once all have passed here again
    const Candidate winner = best_of_warp(of_warp[t % 2][lane]);
    if (threadIdx.x == 0) write_top(p, row, t, targets, sum, winner.z, winner.id);
    const int owner = winner.id % kTopThreads;
    if (owner / kWarpThreads != warp || t + 1 == p.top) continue;
    const Candidate next = best_of_warp(best_after(z, p.vocab, owner + int64_t{kTopThreads} * lane,
                                                   int64_t{kTopThreads} * kWarpThreads, false, winner));
    if (owner % kWarpThreads == lane) mine = next;
  }
}

}  // namespace isobit::linear_logp::cuda
