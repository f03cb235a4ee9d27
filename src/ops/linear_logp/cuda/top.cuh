// The top list of a row from its logits in memory and the largest logit of each unit.
//
// The T best ids lie in the T units with the largest maxima, of equal ones those that come first: an id of any other
// unit has T ids before it, one in each of those units. So a block reads T units of its row, and finds T units and T
// ids in the same way: every thread keeps the best of its own that has not been taken, and each round compares the
// threads' candidates. Descending values, equal ones by ascending id, so nothing depends on who owns what.
#pragma once

#include "ops/linear_logp/cuda/outputs.cuh"
#include "ops/linear_logp/cuda/unit_sum.cuh"

namespace isobit::linear_logp::cuda {

constexpr int kTopThreads = 256;
constexpr int kTopWarps = kTopThreads / kWarpThreads;

struct Candidate {
  float z;
  int32_t id;
};
// Behind every id, those at -inf too.
__device__ __forceinline__ Candidate no_candidate() { return {kMinusInfinity, 0x7FFFFFFF}; }

__device__ __forceinline__ bool ranks_before(const Candidate& a, const Candidate& b) {
  return linear_logp::ranks_before(a.z, a.id, b.z, b.id);
}

// The best of the candidates that the lanes of `kLanes` neighbours hold. All lanes get it.
template <int kLanes>
__device__ __forceinline__ Candidate best_of_lanes(Candidate mine) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) {
    const Candidate other{__shfl_xor_sync(kWarp, mine.z, mask), __shfl_xor_sync(kWarp, mine.id, mask)};
    if (ranks_before(other, mine)) mine = other;
  }
  return mine;
}

struct TopShared {
  Candidate of_warp[2][kTopWarps];
  int32_t unit[kMaxTop];
  float z[kMaxTop * kUnit];  // of those units
};

// The best of candidates thread, thread + kTopThreads, ... below `count` that rank after `last`, or of all.
template <class At>
__device__ __forceinline__ Candidate best_after(int count, bool all, const Candidate& last, At at) {
  Candidate best = no_candidate();
#pragma unroll 4
  for (int i = threadIdx.x; i < count; i += kTopThreads) {
    const Candidate candidate = at(i);
    if ((all || ranks_before(last, candidate)) && ranks_before(candidate, best)) best = candidate;
  }
  return best;
}

// take(t, candidate), by one thread, for the `rounds` best of at(0), ..., at(count - 1), best first.
template <class At, class Take>
__device__ __forceinline__ void take_best(TopShared& shared, int count, int rounds, At at, Take take) {
  const int warp = threadIdx.x / kWarpThreads;
  const int lane = threadIdx.x % kWarpThreads;
  Candidate mine = best_after(count, true, no_candidate(), at);
  for (int t = 0; t < rounds; ++t) {
    const Candidate best_here = best_of_lanes<kWarpThreads>(mine);
    if (lane == 0) shared.of_warp[t % 2][warp] = best_here;
    __syncthreads();  // the other half is free for the next round once all have passed here again
    const Candidate winner = best_of_lanes<kTopWarps>(shared.of_warp[t % 2][lane % kTopWarps]);
    if (threadIdx.x == 0) take(t, winner);
    if (mine.id == winner.id && t + 1 < rounds) mine = best_after(count, false, winner, at);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kTopThreads) list_top(const __grid_constant__ Job job) {
  __shared__ TopShared shared;
  const Params& p = job.p;
  const int64_t row = blockIdx.x;
  const RowTargets targets = inspect_targets(p, row);
  const RowSum sum = row_sum({job.top.row_r[row], job.top.row_s[row], 0.0f});

  const auto units = static_cast<int>(job.top.maxima_stride);
  const int taken = p.top < units ? static_cast<int>(p.top) : units;
  const float* const maxima = job.top.maxima + row * job.top.maxima_stride;
  take_best(
      shared, units, taken,
      [&](int i) {
        return Candidate{maxima[i], i};
      },
      [&](int t, const Candidate& unit) { shared.unit[t] = unit.id < units ? unit.id : 0; });  // a NaN row has none

  const float* const logits = job.top.logits + row * job.top.logits_stride;
  const int count = taken * static_cast<int>(kUnit);
  for (int i = threadIdx.x; i < count; i += kTopThreads) {
    const int64_t id = shared.unit[i / kUnit] * kUnit + i % kUnit;
    shared.z[i] = id < p.vocab ? logits[id] : kMinusInfinity;
  }
  __syncthreads();
  const auto at = [&](int i) {
    const int64_t id = shared.unit[i / kUnit] * kUnit + i % kUnit;
    return id < p.vocab ? Candidate{shared.z[i], static_cast<int32_t>(id)} : no_candidate();
  };
  take_best(shared, count, static_cast<int>(p.top), at,
            [&](int t, const Candidate& best) { write_top(p, row, t, targets, sum, best.z, best.id); });
}

}  // namespace isobit::linear_logp::cuda
