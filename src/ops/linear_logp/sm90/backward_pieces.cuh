// The stages of a unit: pieces of them, which the warpgroups multiply in turn, and laps, in which blocks keep pace.
#pragma once

#include "ops/linear_logp/cuda/backward_walk.cuh"
#include "ops/linear_logp/sm90/pace.cuh"

namespace isobit::linear_logp::sm90 {

using cuda::Product;
using cuda::Unit;
using cuda::Walk;

// Stages of a unit and of its pieces.
template <Product kProduct>
struct Pieces {
  static constexpr int32_t kSteps = kProduct == Product::kLogits ? INT32_MAX : kPiece / kDepth;

  static __device__ __forceinline__ int32_t steps_of(int32_t depth) { return (depth + kDepth - 1) / kDepth; }
  static __device__ __forceinline__ int32_t steps_of_piece(int32_t steps, int32_t piece) {
    if constexpr (kProduct == Product::kLogits) return steps;
    const int32_t left = steps - piece * kSteps;
    return left < 0 ? 0 : left < kSteps ? left : kSteps;
  }
  // Those that have a stage.
  static __device__ __forceinline__ int32_t count(int32_t steps) {
    if constexpr (kProduct == Product::kLogits) return 1;
    return (steps + kSteps - 1) / kSteps;
  }
};

template <Product kProduct>
__device__ __forceinline__ int32_t steps_of(const Walk<kProduct>& walk, const Unit& unit) {
  return Pieces<kProduct>::steps_of(walk.depth(unit));
}
// The most that a unit of the launch has.
template <Product kProduct>
__device__ __forceinline__ int32_t pieces_of(const Walk<kProduct>& walk) {
  return Pieces<kProduct>::count(Pieces<kProduct>::steps_of(walk.largest_depth()));
}

// The products whose blocks keep pace. The other ones' copying thread has no register left for it.
template <Product kProduct>
constexpr bool kPaced = kProduct == Product::kLogits;

// Laps of a unit: kLapStages stages or what is left of a piece.
template <Product kProduct>
__device__ __forceinline__ uint32_t laps_of(int32_t steps) {
  constexpr int32_t kStages = TileConfig::kLapStages;
  uint32_t laps = 0;
  for (int32_t piece = 0; piece < Pieces<kProduct>::count(steps); ++piece) {
    laps += (Pieces<kProduct>::steps_of_piece(steps, piece) + kStages - 1) / kStages;
  }
  return laps;
}

// The pacing thread. Where a segment is shorter than the others, some blocks have fewer laps than this assumes of them;
// then the others lose their patience in the end.
template <Product kProduct>
__device__ __forceinline__ void keep_pace(const Walk<kProduct>& walk, const Pace& pace, uint32_t* counters) {
  const uint32_t count = walk.count();
  const uint32_t of_all = count / gridDim.x * laps_of<kProduct>(Pieces<kProduct>::steps_of(walk.largest_depth()));
  bool patient = true;
  uint32_t lap = 0;
  for (uint32_t index = blockIdx.x; index < count; index += gridDim.x) {
    for (uint32_t left = laps_of<kProduct>(steps_of(walk, walk.at(index))); left > 0; --left, ++lap) {
      wait_barrier(pace.started, lap & 1);
      await_blocks(counters + lap, lap < of_all ? gridDim.x : count % gridDim.x, &patient);
      device::ptx::mbarrier_arrive(pace.allowed);
    }
  }
}

// The copying thread, before the first stage of a lap.
__device__ __forceinline__ void start_lap(const Pace& pace, uint32_t lap) {
  if (lap > 0) wait_barrier(pace.allowed, (lap - 1) & 1);
  device::ptx::mbarrier_arrive(pace.started);
}

}  // namespace isobit::linear_logp::sm90
