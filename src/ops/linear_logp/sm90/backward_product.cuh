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

#include "ops/linear_logp/sm90/backward_config.h"
#include "ops/linear_logp/sm90/backward_pieces.cuh"
#include "ops/linear_logp/sm90/pipeline.cuh"

namespace isobit::linear_logp::sm90 {

using cuda::BackwardJob;
using cuda::ProductPlan;
using ProductRing = device::Ring<ProductConfig::kStages>;
using ProductPosition = device::RingPosition<ProductConfig::kStages>;

// 64 x 64 boxes side by side: `blocks` of them from column x on.
__device__ __forceinline__ void copy_transposed(uint32_t to, const TensorMap* map, uint32_t full, int32_t x, int32_t k,
                                                int blocks) {
  for (int i = 0; i < blocks; ++i) {
    ptx::tma_load_2d(to + i * kTransposedBlock, map, full, x + 64 * i, k, ptx::L2Hint::kEvictNormal);
  }
}

// Brings one piece of a unit: stages [first, first + steps).
template <Product kProduct>
__device__ __forceinline__ void copy_piece(const TensorMap* a, const TensorMap* b, const BackwardJob& job,
                                           const Unit& unit, int32_t first, int32_t steps, const ProductRing& ring,
                                           ProductPosition& at, uint32_t stages) {
  constexpr auto kHint = ptx::L2Hint::kEvictNormal;
  const int columns = unit.wide ? cuda::kWideColumns : cuda::kNarrowColumns;
  // Rows of the operands' maps at k = 0; dz is a column of blocks there.
  const int32_t first_id = static_cast<int32_t>(job.first_id) + unit.slice * job.slice_ids;
  const int32_t block = kProduct == Product::kHidden   ? job.dz_map_row(unit.row, unit.slice, 0)
                        : kProduct == Product::kWeight ? job.dz_map_row(0, unit.slice, unit.row)
                                                       : 0;
  for (int32_t step = first; step < first + steps; ++step) {
    ring.acquire(at, ProductConfig::kBytesA + columns * kRowBytes);
    const uint32_t to_a = stages + at.stage * ProductConfig::kStageBytes;
    const uint32_t to_b = to_a + ProductConfig::kBytesA;
    const uint32_t full = ring.full(at.stage);
    const int32_t k = step * kDepth;
    if constexpr (kProduct == Product::kLogits) {
      ptx::tma_load_2d(to_a, a, full, k, static_cast<int32_t>(job.first_row) + unit.row, kHint);
      ptx::tma_load_2d(to_b, b, full, k, first_id + unit.column, kHint);
    } else if constexpr (kProduct == Product::kHidden) {
      ptx::tma_load_2d(to_a, a, full, 0, block + step * cuda::kTileRows, kHint);
      copy_transposed(to_b, b, full, unit.column, first_id + k, columns / 64);
    } else {
      const int32_t row = block + k / cuda::kTileRows * job.dz_map_rows() + k % cuda::kTileRows;
      for (int i = 0; i < cuda::kTileRows / 64; ++i) {
        // Not beyond the slice, where nobody may have written: rows of the result that nobody wants are anything.
        const bool exists = unit.row + 64 * i < job.slice_pitch;
        ptx::tma_load_2d(to_a + i * kTransposedBlock, a, full, 0, exists ? row + i * cuda::kTileRows : row, kHint);
      }
      copy_transposed(to_b, b, full, unit.column, static_cast<int32_t>(job.first_row) + k, columns / 64);
    }
    at.advance();
  }
}

template <Product kProduct>
__device__ __forceinline__ void copy_units(const TensorMap* a, const TensorMap* b, const BackwardJob& job,
                                           const Walk<kProduct>& walk, const ProductRing& ring, uint32_t stages) {
  ProductPosition at;
  const Phases<kProduct> phases(walk);
  const uint32_t count = walk.count();
  for (int32_t phase = 0; phase < phases.count(); ++phase) {
    const int32_t piece = phases.piece(phase);
    for (uint32_t index = blockIdx.x; index < count; index += gridDim.x) {
      const Unit unit = walk.at(index);
      copy_piece<kProduct>(a, b, job, unit, phases.first_step(piece), phases.steps(steps_of(walk.depth(unit)), piece),
                           ring, at, stages);
    }
  }
}

// This thread's memory for the sums of a tile. Asked for where it is needed: an address costs registers.
__device__ __forceinline__ float4* own_scratch(void* scratch) {
  constexpr int kTileVectors = cuda::kTileRows * cuda::kWideColumns / 4;
  const int group = threadIdx.x / kWarpgroup - 1;
  return static_cast<float4*>(scratch) + (int64_t{blockIdx.x} * 2 + group) * kTileVectors + threadIdx.x % kWarpgroup;
}

// What one warpgroup does of a unit in a phase: chains, their sum, and what the sink does with it. `pass_turn` is
// called when the last products have been issued.
//   sink.begin(unit, d)            may add a first addend to the first piece
//   sink.keep(unit, d, scratch)    takes the sum of the pieces so far
//   sink.resume(unit, d, scratch)  adds it to the next piece
//   sink.finish(unit, d)           takes the sum of all; in kHidden of all so far, which resume adds as well
template <Product kProduct, int kColumns, class Sink, class PassTurn>
__device__ __forceinline__ void finish_unit(const Sink& sink, const Unit& unit, int32_t all_steps, int32_t piece,
                                            const ProductRing& ring, ProductPosition& at, uint32_t stages,
                                            void* scratch, PassTurn pass_turn) {
  constexpr int kTransposedA = kProduct == Product::kWeight ? 1 : 0;
  constexpr int kTransposedB = kProduct == Product::kLogits ? 0 : 1;
  const int32_t steps = Phases<kProduct>::steps(all_steps, piece);
  float d[2][kColumns / 2];
  if constexpr (kProduct != Product::kLogits) {  // whose chains are never empty
    if (steps == 0) {
      pass_turn();
      if (all_steps > 0 || piece > 0 || sink.has_addend()) return;  // what is there stays
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int i = 0; i < kColumns / 2; ++i) d[m][i] = 0.0f;
      }
    }
  }
  constexpr int32_t kChainSteps = kProduct == Product::kWeight ? kPieceSteps : INT32_MAX;
  for (int32_t first = 0; kProduct == Product::kLogits || first < steps; first += kChainSteps) {
    const bool last = steps - first <= kChainSteps;
    multiply_tile<numerics::Bf16, kTransposedA, kTransposedB>(d, ring, at, stages, ProductConfig::kStageBytes, 0,
                                                              ProductConfig::kBytesA,
                                                              last ? steps - first : kChainSteps, [&] {
                                                                if (last) pass_turn();
                                                              });
    if constexpr (kProduct == Product::kWeight) {
      if (first == 0) {
        sink.begin(unit, d);
      } else {
        sink.resume(unit, d, own_scratch(scratch));
      }
      if (!last) sink.keep(unit, d, own_scratch(scratch));
    } else {
      break;
    }
  }
  if constexpr (kProduct == Product::kHidden) {
    if (Phases<kProduct>::resumes(all_steps, piece)) sink.resume(unit, d, nullptr);
  }
  sink.finish(unit, d);
}

// Warpgroup 0 has the units of even rounds, 1 those of odd ones, in every phase, and they take turns without exception:
// where a phase that is not the last ends with an even round, 1 passes its turn on.
template <Product kProduct, class Sink>
__device__ __forceinline__ void multiply_units(const Walk<kProduct>& walk, const Sink& sink, const ProductRing& ring,
                                               uint32_t stages, void* scratch) {
  const int group = threadIdx.x / kWarpgroup - 1;
  const uint32_t count = walk.count();
  const Phases<kProduct> phases(walk);
  ProductPosition at;
  if (group == 1 && blockIdx.x < count && phases.count() > 0) give_turn(0);
  for (int32_t phase = 0; phase < phases.count(); ++phase) {
    const int32_t piece = phases.piece(phase);
    const bool ends = phase + 1 == phases.count();
    for (uint32_t pair = blockIdx.x; pair < count; pair += 2 * gridDim.x) {
      const uint32_t next = pair + gridDim.x;
      const bool both = next < count;
      if (group == 1 && !both && ends) return;
      const Unit unit = walk.at(group == 0 || !both ? pair : next);
      const int32_t steps = steps_of(walk.depth(unit));
      const int32_t other_steps = phases.steps(steps_of(walk.depth(walk.at(group == 0 && both ? next : pair))), piece);
      if (group == 1) at.advance(other_steps);
      wait_turn(group);
      const auto pass_turn = [&] {
        if (group == 0 ? both || !ends : next + gridDim.x < count || !ends) give_turn(1 - group);
      };
      if (group == 1 && !both) {
        pass_turn();
        continue;
      }
      const auto finish = [&](auto columns) {
        finish_unit<kProduct, decltype(columns)::value>(sink, unit, steps, piece, ring, at, stages, scratch, pass_turn);
      };
      if (kProduct == Product::kLogits || unit.wide) {
        finish(std::integral_constant<int, cuda::kWideColumns>());
      } else if constexpr (kProduct != Product::kLogits) {
        finish(std::integral_constant<int, cuda::kNarrowColumns>());
      }
      if (group == 0 && both) at.advance(other_steps);
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
  // The product for d_weight reads nothing of the one for d_hidden: its blocks follow on those that have no unit left.
  if constexpr (kProduct == Product::kHidden) ptx::launch_dependents();
  const Walk<kProduct> walk(job, plan);
  // The warpgroup index from one lane, so that the compiler sees a branch that is uniform in the warp.
  const int warpgroup = __shfl_sync(cuda::kWarp, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::release_registers<ProductConfig::kCopyRegisters>();
    if (threadIdx.x == 0) {
      copy_units<kProduct>(&a, &b, job, walk, ring, stages);
      // Whoever waits for this grid waits for that one too.
      if constexpr (kProduct == Product::kWeight) ptx::wait_for_previous_grid();
    }
  } else {
    ptx::claim_registers<ProductConfig::kMultiplyRegisters>();
    const int warp = threadIdx.x / cuda::kWarpThreads - 4;  // of both groups
    float* const columns = reinterpret_cast<float*>(shared + (stages - base) + kRingBytes) +
                           warp * 16 * cuda::kWarpThreads + threadIdx.x % cuda::kWarpThreads;
    multiply_units<kProduct>(walk, Sink(job, walk.rows(), columns), ring, stages, job.scratch);
  }
}

}  // namespace isobit::linear_logp::sm90
