// The stages of a unit, and the phases of a launch.
#pragma once

#include "ops/linear_logp/cuda/backward_walk.cuh"
#include "ops/linear_logp/sm90/backward_config.h"

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

}  // namespace isobit::linear_logp::sm90
