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
                                           const Unit& unit, int32_t first, int32_t steps, const Pace& pace, bool paced,
                                           uint32_t& lap, const ProductRing& ring, ProductPosition& at,
                                           uint32_t stages) {
  constexpr auto kHint = ptx::L2Hint::kEvictNormal;
  const int columns = unit.wide ? cuda::kWideColumns : cuda::kNarrowColumns;
  // Rows of the operands' maps at k = 0; dz is a column of blocks there.
  const int32_t first_id = static_cast<int32_t>(job.first_id) + unit.slice * job.slice_ids;
  const int32_t block = kProduct == Product::kHidden   ? job.dz_map_row(unit.row, unit.slice, 0)
                        : kProduct == Product::kWeight ? job.dz_map_row(0, unit.slice, unit.row)
                                                       : 0;
  for (int32_t step = first; step < first + steps; ++step) {
    if (kPaced<kProduct> && paced && step % TileConfig::kLapStages == 0) start_lap(pace, lap++);
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

// In the order in which the two warpgroups multiply: their units' pieces in turn.
template <Product kProduct>
__device__ __forceinline__ void copy_units(const TensorMap* a, const TensorMap* b, const BackwardJob& job,
                                           const Walk<kProduct>& walk, const Pace& pace, bool paced,
                                           const ProductRing& ring, uint32_t stages) {
  ProductPosition at;
  uint32_t lap = 0;
  const uint32_t count = walk.count();
  for (uint32_t pair = blockIdx.x; pair < count; pair += 2 * gridDim.x) {
    for (int32_t piece = 0; piece < pieces_of(walk); ++piece) {
      for (uint32_t index = pair; index < count && index <= pair + gridDim.x; index += gridDim.x) {
        const Unit unit = walk.at(index);
        copy_piece<kProduct>(a, b, job, unit, piece * Pieces<kProduct>::kSteps,
                             Pieces<kProduct>::steps_of_piece(steps_of(walk, unit), piece), pace, paced, lap, ring, at,
                             stages);
      }
    }
  }
}

// What a warpgroup knows of its turn: the other one has a unit of the same pair, or none.
struct Turn {
  int32_t steps, other_steps;  // of the two units; anything without the other one
  bool both;                   // else this is group 0
  bool more;                   // whether others come after these two

  static __device__ __forceinline__ int group() { return threadIdx.x / kWarpgroup - 1; }
};

// A place in the turn for one piece: waits, has `multiply(steps, pass_turn)` issue its products, goes on behind the
// other warpgroup's.
template <Product kProduct, class Multiply>
__device__ __forceinline__ void take_turn(const Walk<kProduct>& walk, const Turn& turn, int32_t piece,
                                          ProductPosition& at, const Multiply& multiply) {
  const int32_t other_steps = Pieces<kProduct>::steps_of_piece(turn.other_steps, piece);
  if (turn.group() == 1) at.advance(other_steps);
  if (turn.both || piece == 0) wait_turn(turn.group());
  multiply(Pieces<kProduct>::steps_of_piece(turn.steps, piece), [&] {
    if (turn.group() == 0 ? turn.both : turn.more || piece + 1 < pieces_of(walk)) give_turn(1 - turn.group());
  });
  if (turn.group() == 0 && turn.both) at.advance(other_steps);
}

// This thread's memory for the sums of a tile. Asked for where it is needed: an address costs registers.
__device__ __forceinline__ float4* own_scratch(void* scratch) {
  constexpr int kTileVectors = cuda::kTileRows * cuda::kWideColumns / 4;
  const int group = threadIdx.x / kWarpgroup - 1;
  return static_cast<float4*>(scratch) + (int64_t{blockIdx.x} * 2 + group) * kTileVectors + threadIdx.x % kWarpgroup;
}

// Everything of one unit by one warpgroup: the pieces' chains, their sum, and what the sink does with it. The turn
// passes after every piece, so that what happens between pieces is hidden as well.
//   sink.begin(unit, d)            may add a first addend to the first piece
//   sink.keep(unit, d, scratch)    takes the sum of the pieces so far
//   sink.resume(unit, d, scratch)  adds it to the next piece
//   sink.finish(unit, d)           takes the sum of all
template <Product kProduct, int kColumns, class Sink>
__device__ __forceinline__ void finish_unit(const Sink& sink, const Walk<kProduct>& walk, const Unit& unit,
                                            const Turn& turn, const ProductRing& ring, ProductPosition& at,
                                            uint32_t stages, void* scratch) {
  constexpr int kTransposedA = kProduct == Product::kWeight ? 1 : 0;
  constexpr int kTransposedB = kProduct == Product::kLogits ? 0 : 1;
  const int32_t used = Pieces<kProduct>::count(turn.steps);
  float d[2][kColumns / 2];
  if (used == 0) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int i = 0; i < kColumns / 2; ++i) d[m][i] = 0.0f;
    }
  }
  int32_t piece = 0;
  for (; piece < used; ++piece) {
    take_turn<kProduct>(walk, turn, piece, at, [&](int32_t steps, auto pass_turn) {
      multiply_tile<numerics::Bf16, kTransposedA, kTransposedB>(d, ring, at, stages, ProductConfig::kStageBytes, 0,
                                                                ProductConfig::kBytesA, steps, pass_turn);
    });
    if constexpr (kProduct == Product::kLogits) {
      break;
    } else {
      if (piece == 0) {
        sink.begin(unit, d);
      } else {
        sink.resume(unit, d, own_scratch(scratch));
      }
      if (piece + 1 < used) sink.keep(unit, d, own_scratch(scratch));
    }
  }
  if (used > 0 || !sink.has_addend()) sink.finish(unit, d);  // without a term the bytes of an addend stay
  if constexpr (kProduct == Product::kHidden) {              // elsewhere all units are equally deep
    for (; piece < pieces_of(walk); ++piece) {
      take_turn<kProduct>(walk, turn, piece, at, [](int32_t, auto pass_turn) { pass_turn(); });
    }
  }
}

template <Product kProduct, class Sink>
__device__ __forceinline__ void multiply_units(const Walk<kProduct>& walk, const Sink& sink, const ProductRing& ring,
                                               uint32_t stages, void* scratch) {
  const int group = threadIdx.x / kWarpgroup - 1;
  const uint32_t count = walk.count();
  ProductPosition at;
  if (group == 1 && blockIdx.x < count && pieces_of(walk) > 0) give_turn(0);
  for (uint32_t pair = blockIdx.x; pair < count; pair += 2 * gridDim.x) {
    const uint32_t next = pair + gridDim.x;
    const bool both = next < count;
    if (group == 1 && !both) return;
    const Unit unit = walk.at(group == 0 ? pair : next);
    const Turn turn{steps_of(walk, unit), steps_of(walk, walk.at(group == 0 && both ? next : pair)), both,
                    next + gridDim.x < count};
    const auto finish = [&](auto columns) {
      finish_unit<kProduct, decltype(columns)::value>(sink, walk, unit, turn, ring, at, stages, scratch);
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
  constexpr uint32_t kPaceAt = kRingBytes + ProductConfig::kColumnBytes + ProductRing::kBarrierBytes;
  const Pace pace(stages + kPaceAt);
  if (threadIdx.x == 0) {
    ring.initialise(kUsersOfStage);
    pace.initialise();
  }
  __syncthreads();
  // The product for d_weight reads nothing of the one for d_hidden: its blocks follow on those that have no unit left.
  if constexpr (kProduct == Product::kHidden) ptx::launch_dependents();
  const Walk<kProduct> walk(job, plan);
  // The warpgroup index from one lane, so that the compiler sees a branch that is uniform in the warp.
  const int warpgroup = __shfl_sync(cuda::kWarp, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::release_registers<ProductConfig::kCopyRegisters>();
    if constexpr (kPaced<kProduct>) {
      if (threadIdx.x == cuda::kWarpThreads && plan.laps != nullptr) keep_pace(walk, pace, plan.laps);
    }
    if (threadIdx.x == 0) {
      copy_units<kProduct>(&a, &b, job, walk, pace, plan.laps != nullptr, ring, stages);
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
