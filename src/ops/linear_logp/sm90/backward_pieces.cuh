// The stages of a unit: pieces of them, which the warpgroups multiply in turn, and laps, in which blocks keep pace.
#pragma once

#include "ops/linear_logp/cuda/backward_walk.cuh"
#include "ops/linear_logp/sm90/pace.cuh"

namespace isobit::linear_logp::sm90 {

using cuda::Product;
using cuda::Unit;
using cuda::Walk;

__device__ __forceinline__ int32_t steps_of(int32_t depth) { return (depth + kDepth - 1) / kDepth; }

// Stages of a chain: a piece of 8,192.
constexpr int32_t kPieceSteps = kPiece / kDepth;

// The phases of a launch. In kHidden every phase is one piece of all units, so that between two pieces of a unit, when
// the sum of the first waits in memory, the other warpgroup has whole units to multiply. The first two change places:
// piece 1 + piece 0 has the bits of piece 0 + piece 1, and what it adds to is then the long one. Elsewhere there is one
// phase: all of every unit.
template <Product kProduct>
class Phases {
 public:
  __device__ __forceinline__ explicit Phases(const Walk<kProduct>& walk)
      : count_(kProduct == Product::kHidden ? (steps_of(walk.largest_depth()) + kPieceSteps - 1) / kPieceSteps : 1) {}

  __device__ __forceinline__ int32_t count() const { return count_; }
  __device__ __forceinline__ int32_t piece(int32_t phase) const { return count_ > 1 && phase < 2 ? 1 - phase : phase; }
  static __device__ __forceinline__ int32_t first_step(int32_t piece) {
    return kProduct == Product::kHidden ? piece * kPieceSteps : 0;
  }
  // Of a unit of `all` stages.
  static __device__ __forceinline__ int32_t steps(int32_t all, int32_t piece) {
    if constexpr (kProduct != Product::kHidden) return all;
    const int32_t left = all - piece * kPieceSteps;
    return left < 0 ? 0 : left < kPieceSteps ? left : kPieceSteps;
  }
  // Whether an earlier phase has left a sum of such a unit.
  static __device__ __forceinline__ bool resumes(int32_t all, int32_t piece) {
    return piece > 1 || (piece == 0 && all > kPieceSteps);
  }

 private:
  int32_t count_;
};

// The products whose blocks keep pace.
template <Product kProduct>
constexpr bool kPaced = false;

__device__ __forceinline__ uint32_t laps_of(int32_t steps) {
  return (static_cast<uint32_t>(steps) + TileConfig::kLapStages - 1) / TileConfig::kLapStages;
}

// The pacing thread. Where a segment is shorter than the others, some blocks lack a lap of it; then the others lose
// their patience.
template <Product kProduct>
__device__ __forceinline__ void keep_pace(const Walk<kProduct>& walk, const Pace& pace, uint32_t* counters) {
  const Phases<kProduct> phases(walk);
  bool patient = true;
  uint32_t started = 0;
  for (int32_t phase = 0; phase < phases.count(); ++phase) {
    const int32_t piece = phases.piece(phase);
    for (uint32_t first = 0; first + blockIdx.x < walk.count(); first += gridDim.x) {
      const int32_t steps = steps_of(walk.depth(walk.at(first + blockIdx.x)));
      const uint32_t left = walk.count() - first;
      for (uint32_t lap = 0; lap < laps_of(phases.steps(steps, piece)); ++lap, ++started) {
        wait_barrier(pace.started, started & 1);
        await_blocks(counters + lap, left < gridDim.x ? left : gridDim.x, &patient);
        device::ptx::mbarrier_arrive(pace.allowed);
      }
      counters += laps_of(phases.steps(steps_of(walk.largest_depth()), piece));
    }
    // A block without a unit of the last round is ahead by that.
    const uint32_t rounds = (walk.count() + gridDim.x - 1) / gridDim.x;
    const bool lacks_one = (rounds - 1) * gridDim.x + blockIdx.x >= walk.count();
    if (lacks_one) counters += laps_of(phases.steps(steps_of(walk.largest_depth()), piece));
  }
}

// The copying thread, before the first stage of a lap.
__device__ __forceinline__ void start_lap(const Pace& pace, uint32_t lap) {
  if (lap > 0) wait_barrier(pace.allowed, (lap - 1) & 1);
  device::ptx::mbarrier_arrive(pace.started);
}

}  // namespace isobit::linear_logp::sm90
