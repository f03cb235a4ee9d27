// The three products of the backward pass (cuda/backward_tiles.h) on SM90: one persistent pipeline, three kinds of
// operands, and what each does with a finished tile.
//
//   A ---\                   5 stages of 40 KB                registers, 192 (128) a thread
//         > copy engine -> [128 x 64 of A | 192 x 64 of B] -> wgmma 2 x m64n192k16 (n128) -> a sink of the product
//   B ---/                                                        ^ |
//                                      sums of pieces, in memory <--+-+ every 8,192 of K: docs/bit-contract.md 3.6
//
// Blocks of three warpgroups: the first copies (one thread), the others take whole units in turn; while one multiplies,
// the other is busy with its results. Barriers are those of the forward pass (kernel.cuh): full, empty, turn. A
// transposed operand lies in shared memory as it does in global memory: rows of one k, 64 elements each.
#pragma once

#include <type_traits>

#include "ops/linear_logp/cuda/backward_walk.cuh"
#include "ops/linear_logp/sm90/backward_config.h"
#include "ops/linear_logp/sm90/pipeline.cuh"

namespace isobit::linear_logp::sm90 {

using cuda::BackwardJob;
using cuda::Product;
using cuda::ProductPlan;
using cuda::Unit;
using cuda::Walk;
using ProductRing = device::Ring<ProductConfig::kStages>;
using ProductPosition = device::RingPosition<ProductConfig::kStages>;

// Stages of a unit.
__device__ __forceinline__ int32_t steps_of(int32_t depth) { return (depth + kDepth - 1) / kDepth; }

// 64 x 64 boxes side by side: `blocks` of them from column x on.
__device__ __forceinline__ void copy_transposed(uint32_t to, const TensorMap* map, uint32_t full, int32_t x, int32_t k,
                                                int blocks) {
  for (int i = 0; i < blocks; ++i) {
    ptx::tma_load_2d(to + i * kTransposedBlock, map, full, x + 64 * i, k, ptx::L2Hint::kEvictNormal);
  }
}

template <Product kProduct>
__device__ __forceinline__ void copy_units(const TensorMap* a, const TensorMap* b, const BackwardJob& job,
                                           const Walk<kProduct>& walk, const ProductRing& ring, uint32_t stages) {
  constexpr auto kHint = ptx::L2Hint::kEvictNormal;
  ProductPosition at;
  const uint32_t count = walk.count();
  for (uint32_t index = blockIdx.x; index < count; index += gridDim.x) {
    const Unit unit = walk.at(index);
    const int32_t first_id = static_cast<int32_t>(job.first_id) + unit.slice * job.slice_ids;
    const int columns = unit.wide ? cuda::kWideColumns : cuda::kNarrowColumns;
    const int32_t steps = steps_of(walk.depth(unit));
    for (int32_t step = 0; step < steps; ++step) {
      ring.acquire(at, ProductConfig::kBytesA + columns * kRowBytes);
      const uint32_t to_a = stages + at.stage * ProductConfig::kStageBytes;
      const uint32_t to_b = to_a + ProductConfig::kBytesA;
      const uint32_t full = ring.full(at.stage);
      const int32_t k = step * kDepth;
      if constexpr (kProduct == Product::kLogits) {
        ptx::tma_load_2d(to_a, a, full, k, static_cast<int32_t>(job.first_row) + unit.row, kHint);
        ptx::tma_load_2d(to_b, b, full, k, first_id + unit.column, kHint);
      } else if constexpr (kProduct == Product::kHidden) {
        ptx::tma_load_3d(to_a, a, full, k, unit.row, unit.slice, kHint);
        copy_transposed(to_b, b, full, unit.column, first_id + k, columns / 64);
      } else {
        copy_transposed(to_a, a, full, unit.slice * job.slice_pitch + unit.row, k, cuda::kTileRows / 64);
        copy_transposed(to_b, b, full, unit.column, static_cast<int32_t>(job.first_row) + k, columns / 64);
      }
      at.advance();
    }
  }
}

// Everything of one unit by one warpgroup: the pieces' chains, their sum, and what the sink does with it. `pass_turn`
// is called when the last products have been issued.
//   sink.begin(unit, d)            may add a first addend to the first piece
//   sink.keep(unit, d, scratch)    takes the sum of the pieces so far
//   sink.resume(unit, d, scratch)  adds it to the next piece
//   sink.finish(unit, d)           takes the sum of all
template <Product kProduct, int kColumns, class Sink, class PassTurn>
__device__ __forceinline__ void finish_unit(const Sink& sink, const Unit& unit, int32_t steps, const ProductRing& ring,
                                            ProductPosition& at, uint32_t stages, float4* scratch, PassTurn pass_turn) {
  constexpr int kTransposedA = kProduct == Product::kWeight ? 1 : 0;
  constexpr int kTransposedB = kProduct == Product::kLogits ? 0 : 1;
  constexpr int32_t kPieceSteps = kPiece / kDepth;
  float d[2][kColumns / 2];
  if (steps == 0) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int i = 0; i < kColumns / 2; ++i) d[m][i] = 0.0f;
    }
    pass_turn();
    if (sink.has_addend()) return;  // whose bytes stay
  }
  for (int32_t first = 0; first < steps; first += kPieceSteps) {
    const bool last = kProduct == Product::kLogits || first + kPieceSteps >= steps;
    const int32_t here = last ? steps - first : kPieceSteps;
    multiply_tile<numerics::Bf16, kTransposedA, kTransposedB>(d, ring, at, stages, ProductConfig::kStageBytes, 0,
                                                              ProductConfig::kBytesA, here, [&] {
                                                                if (last) pass_turn();
                                                              });
    if constexpr (kProduct == Product::kLogits) {
      break;
    } else {
      if (first == 0) {
        sink.begin(unit, d);
      } else {
        sink.resume(unit, d, scratch);
      }
      if (!last) sink.keep(unit, d, scratch);
    }
  }
  sink.finish(unit, d);
}

template <Product kProduct, class Sink>
__device__ __forceinline__ void multiply_units(const Walk<kProduct>& walk, const Sink& sink, const ProductRing& ring,
                                               uint32_t stages, void* scratch) {
  const int group = threadIdx.x / kWarpgroup - 1;
  const uint32_t count = walk.count();
  constexpr int kTileVectors = cuda::kTileRows * cuda::kWideColumns / 4;
  float4* const mine =
      static_cast<float4*>(scratch) + (int64_t{blockIdx.x} * 2 + group) * kTileVectors + threadIdx.x % kWarpgroup;
  ProductPosition at;
  if (group == 1 && blockIdx.x < count) give_turn(0);
  int turn = 0;
  for (uint32_t index = blockIdx.x; index < count; index += gridDim.x, turn ^= 1) {
    const Unit unit = walk.at(index);
    const int32_t steps = steps_of(walk.depth(unit));
    if (turn != group) {
      at.advance(steps);
      continue;
    }
    wait_turn(group);
    const auto pass_turn = [&] {
      if (index + gridDim.x < count) give_turn(1 - group);
    };
    const auto finish = [&](auto columns) {
      finish_unit<kProduct, decltype(columns)::value>(sink, unit, steps, ring, at, stages, mine, pass_turn);
    };
    if constexpr (kProduct == Product::kLogits) {
      finish(std::integral_constant<int, cuda::kWideColumns>());
    } else if (unit.wide) {
      finish(std::integral_constant<int, cuda::kWideColumns>());
    } else {
      finish(std::integral_constant<int, cuda::kNarrowColumns>());
    }
  }
}

// Sink::Sink(job, rows, columns): `columns` are this lane's words in shared memory, as in cuda::Place.
template <Product kProduct, class Sink>
__global__ void __launch_bounds__(kThreads, 1)
    product_kernel(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                   const __grid_constant__ BackwardJob job, const __grid_constant__ ProductPlan plan) {
  extern __shared__ unsigned char shared[];
  const uint32_t base = ptx::shared_address(shared);
  const uint32_t stages = (base + kSwizzleAlignment - 1) / kSwizzleAlignment * kSwizzleAlignment;
  constexpr uint32_t kRingBytes = ProductConfig::kStages * ProductConfig::kStageBytes;
  const ProductRing ring(stages + kRingBytes + ProductConfig::kColumnBytes);
  if (threadIdx.x == 0) ring.initialise(kUsersOfStage);
  __syncthreads();
  const Walk<kProduct> walk(job, plan);
  // The warpgroup index from one lane, so that the compiler sees a branch that is uniform in the warp.
  const int warpgroup = __shfl_sync(cuda::kWarp, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::release_registers<ProductConfig::kCopyRegisters>();
    if (threadIdx.x == 0) copy_units<kProduct>(&a, &b, job, walk, ring, stages);
  } else {
    ptx::claim_registers<ProductConfig::kMultiplyRegisters>();
    const int warp = threadIdx.x / cuda::kWarpThreads - 4;  // of both groups
    float* const columns = reinterpret_cast<float*>(shared + (stages - base) + kRingBytes) +
                           warp * 16 * cuda::kWarpThreads + threadIdx.x % cuda::kWarpThreads;
    multiply_units<kProduct>(walk, Sink(job, walk.rows(), columns), ring, stages, job.scratch);
  }
}

}  // namespace isobit::linear_logp::sm90
