// linear_logp for more than 64 rows on SM90: WGMMA on operands that the copy engine brings, logits never leave
// registers.
//
//   hidden ---\                 5 stages of 40 KB                     registers, 192 a thread
//              > copy engine -> [128 x 64 hidden | 192 x 64 weight] -> wgmma 2 x m64n192k16 -> 128 rows x 192 logits
//   weight ---/                                                                                  |
//                              two slots (a leaf and a unit) per row and tile <- three units <---/
//
// Persistent blocks of three warpgroups: the first copies (one thread) and keeps pace with the other blocks (one
// thread), the others take whole tiles in turn; while one
// multiplies, the other turns its logits into units.
//   barrier       arrives                             waits
//   full[stage]   copy engine, 40 KB                  the warpgroup whose tile it is
//   empty[stage]  the four warps of that warpgroup    the copying thread
//   turn[group]   the other warpgroup                 the warpgroup
//   started       the copying thread, once a lap      the pacing thread
//   allowed       the pacing thread                   the copying thread
#pragma once

#include "ops/linear_logp/cuda/fragment.cuh"
#include "ops/linear_logp/sm90/pace.cuh"
#include "ops/linear_logp/sm90/pipeline.cuh"
#include "ops/linear_logp/sm90/schedule.h"

namespace isobit::linear_logp::sm90 {

struct TileSchedule {
  BandedOrder order;
  int32_t steps;          // stages per tile
  uint32_t* lap_counter;  // zeros, one per lap; nullptr: blocks run freely

  // The last column first: where its reduction is slow, because the last unit is not whole, the products of the next
  // tile hide it.
  __device__ __forceinline__ device::TileOrder::Tile tile(uint32_t index) const {
    const device::TileOrder::Tile tile = order.at(index);
    return {tile.row, order.column_tiles - 1 - tile.column};
  }
};

__device__ __forceinline__ Laps laps_of(const TileSchedule& schedule) {
  return {static_cast<uint32_t>(schedule.order.count()), gridDim.x, static_cast<uint32_t>(schedule.steps)};
}

__device__ __forceinline__ void keep_pace(const TileSchedule& schedule, const Pace& pace) {
  const Laps laps = laps_of(schedule);
  const uint32_t mine = laps.of_block(blockIdx.x);
  ptx::wait_for_previous_grid();  // that zeroes the counters
  bool patient = true;
  for (uint32_t lap = 0; lap + 1 < mine; ++lap) {
    wait_barrier(pace.started, lap & 1);
    await_blocks(schedule.lap_counter + lap, laps.announcements(lap), &patient);
    ptx::mbarrier_arrive(pace.allowed);
  }
}

// The copying thread's side: once a stage.
__device__ __forceinline__ void start_stage(const TileSchedule& schedule, const Pace& pace, uint32_t stage_number,
                                            uint32_t laps) {
  if (schedule.lap_counter == nullptr || stage_number % TileConfig::kLapStages != 0) return;
  const uint32_t lap = stage_number / TileConfig::kLapStages;
  if (lap > 0) wait_barrier(pace.allowed, (lap - 1) & 1);
  if (lap + 1 < laps) ptx::mbarrier_arrive(pace.started);
}

__device__ __forceinline__ void copy_tiles(const TensorMap* hidden, const TensorMap* weight, const Job& job,
                                           const TileSchedule& schedule, const Pace& pace,
                                           const device::Ring<TileConfig::kStages>& ring, uint32_t stages) {
  device::RingPosition<TileConfig::kStages> at;
  const uint32_t laps = laps_of(schedule).of_block(blockIdx.x);
  uint32_t stage_number = 0;
  // Weight row of the first tile's first column; negative when a shard starts inside a leaf.
  const int32_t origin_row = static_cast<int32_t>(job.origin - job.p.first_id);
  for (uint32_t index = blockIdx.x; index < schedule.order.count(); index += gridDim.x) {
    const device::TileOrder::Tile tile = schedule.tile(index);
    const int32_t row = tile.row * TileConfig::kRows;
    const int32_t weight_row = origin_row + tile.column * TileConfig::kIds;
    for (int step = 0; step < schedule.steps; ++step, ++stage_number) {
      start_stage(schedule, pace, stage_number, laps);
      ring.acquire(at, TileConfig::kStageBytes);
      const uint32_t stage = stages + at.stage * TileConfig::kStageBytes;
      const uint32_t full = ring.full(at.stage);
      ptx::tma_load_2d(stage, hidden, full, step * kDepth, row, ptx::L2Hint::kEvictNormal);
      ptx::tma_load_2d(stage + TileConfig::kHiddenBytes, weight, full, step * kDepth, weight_row,
                       ptx::L2Hint::kEvictNormal);
      at.advance();
    }
  }
}

// Three units of a row to the tile's two slots: leaf and unit in even tiles, unit and leaf in odd ones.
template <Mode kMode>
struct TileSink {
  const Job& job;
  int32_t column;  // of the tile
  int32_t row;     // this lane's first
  int32_t ids;     // of the range, from the tile's first on
  Node first;

  __device__ __forceinline__ bool odd() const { return column % 2 != 0; }

  // Lanes 2 h and 2 h + 1 of the quad store one slot each.
  __device__ __forceinline__ void plain(int h, const cuda::PairSum (&unit)[TileConfig::kUnits]) {
    const bool second_unit = (odd() ? 2 : 1) * kUnit < ids;
    cuda::PairSum leaf = pick(odd(), unit[1], unit[0]);
    leaf = pick(second_unit, add(leaf, pick(odd(), unit[2], unit[1])), leaf);
    const int q = threadIdx.x % 4;
    const cuda::PairSum mine = pick((q % 2 != 0) == odd(), leaf, pick(odd(), unit[0], unit[2]));
    if (q / 2 == h) store(h, q % 2, {0, mine.s, mine.q});
  }
  // Lane 0 stores.
  __device__ __forceinline__ void general(int h, int u, const Node& node) {
    const int leaf_start = odd() ? 1 : 0;
    if (u == leaf_start) {
      first = node;
      return;
    }
    const bool ends_leaf = u == leaf_start + 1;
    const Node value = ends_leaf ? merge<kMode != Mode::kLogp>(first, node) : node;
    if (threadIdx.x % 4 == 0) store(h, u == 0 || (u == 1 && !odd()) ? 0 : 1, value);
  }

 private:
  static __device__ __forceinline__ cuda::PairSum add(const cuda::PairSum& a, const cuda::PairSum& b) {
    return {numerics::add_rn(a.s, b.s), numerics::add_rn(a.q, b.q)};
  }
  // By value: a choice between array elements by address would put the array into memory.
  static __device__ __forceinline__ cuda::PairSum pick(bool first_one, cuda::PairSum a, cuda::PairSum b) {
    return {first_one ? a.s : b.s, first_one ? a.q : b.q};
  }
  // A slot without an id of the range does not exist.
  __device__ __forceinline__ void store(int h, int slot, const Node& node) const {
    const int32_t first_id = slot == 0 ? 0 : static_cast<int32_t>(odd() ? kUnit : kLeaf);
    if (row + 8 * h >= job.p.rows || first_id >= ids) return;
    cuda::store_slot_of<kMode>(job.partials, 2 * int64_t{column} + slot, row + 8 * h, node);
  }
};

// The m64 blocks of a tile that this warp does not skip.
template <Mode kMode, class Skips>
__device__ __forceinline__ void finish_tile(const Job& job, float (&d)[2][TileConfig::kIds / 2],
                                            device::TileOrder::Tile tile, float* column, Skips skips) {
  const int lane = threadIdx.x % cuda::kWarpThreads;
  const int warp = threadIdx.x % kWarpgroup / cuda::kWarpThreads;
  const int64_t id = job.origin + int64_t{tile.column} * TileConfig::kIds;
  cuda::Place place{0, static_cast<int32_t>(id), column, false, -1};
  if constexpr (kMode != Mode::kFull) place = cuda::place_of<TileConfig::kUnits>(job, id, column);
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    if (skips(m)) continue;
    place.row = tile.row * TileConfig::kRows + 64 * m + 16 * warp + lane / 4;
    TileSink<kMode> sink{job, tile.column, place.row, static_cast<int32_t>(job.p.first_id + job.p.count - id),
                         identity_node()};
    cuda::reduce_fragment<kMode, TileConfig::kUnits>(job, d[m], place, sink);
  }
}

template <class Format, Mode kMode>
__device__ __forceinline__ void multiply_tiles(const Job& job, const TileSchedule& schedule,
                                               const device::Ring<TileConfig::kStages>& ring, uint32_t stages,
                                               float* columns) {
  const int group = threadIdx.x / kWarpgroup - 1;
  const int lane = threadIdx.x % cuda::kWarpThreads;
  const int warp = threadIdx.x / cuda::kWarpThreads - 4;  // of both groups
  float* const column = columns + warp * cuda::kColumnWords * cuda::kWarpThreads + lane;
  const auto tiles = static_cast<uint32_t>(schedule.order.count());
  device::RingPosition<TileConfig::kStages> at;
  float d[2][TileConfig::kIds / 2];
  if (group == 1 && blockIdx.x < tiles) give_turn(0);
  const auto multiply = [&](uint32_t index) {
    wait_turn(group);
    multiply_tile<Format>(d, ring, at, stages, TileConfig::kStageBytes, 0, TileConfig::kHiddenBytes, schedule.steps,
                          [&] {
                            if (index + gridDim.x < tiles) give_turn(1 - group);
                          });
  };
  if (group == 1) at.advance(schedule.steps);  // over the other group's first tile
  // Before its first turn the second warpgroup reduces what it happens to hold as rows that do not exist, half of its
  // warps one m64 and half the other, so that the instructions are in the caches when the first reduction that counts
  // comes; not where they have side effects, nor where the products of a tile take longer than such a reduction.
  constexpr bool kRehearses = kMode != Mode::kFull;
  const auto step = 2 * static_cast<int32_t>(gridDim.x);
  const auto end = static_cast<int32_t>(tiles);
  auto index = static_cast<int32_t>(blockIdx.x + group * gridDim.x);
  if (kRehearses && group == 1 && index < end && schedule.steps <= TileConfig::kLongSteps) index -= step;
  for (; index < end; index += step) {
    device::TileOrder::Tile tile{schedule.order.row_tiles, schedule.order.column_tiles - 1};
    if (!kRehearses || index >= 0) {
      multiply(static_cast<uint32_t>(index));
      at.advance(schedule.steps);                                         // over the other group's tile
      if constexpr (kMode == Mode::kFull) ptx::wait_for_previous_grid();  // that gathers targets
      tile = schedule.tile(static_cast<uint32_t>(index));
    }
    finish_tile<kMode>(job, d, tile, column, [&](int m) {
      return kRehearses && index < 0 && static_cast<int>(threadIdx.x / (kWarpgroup / 2) % 2) != m;
    });
  }
}

template <class Format, Mode kMode>
__global__ void __launch_bounds__(kThreads, 1)
    tile_kernel(const __grid_constant__ TensorMap hidden, const __grid_constant__ TensorMap weight,
                const __grid_constant__ Job job, const __grid_constant__ TileSchedule schedule) {
  extern __shared__ unsigned char shared[];
  const uint32_t base = ptx::shared_address(shared);
  const uint32_t stages = (base + kSwizzleAlignment - 1) / kSwizzleAlignment * kSwizzleAlignment;
  float* const columns =
      reinterpret_cast<float*>(shared + (stages - base) + TileConfig::kStages * TileConfig::kStageBytes);
  const device::Ring<TileConfig::kStages> ring(stages + TileConfig::kStages * TileConfig::kStageBytes +
                                               TileConfig::kColumnBytes);
  const Pace pace(stages + TileConfig::kStages * TileConfig::kStageBytes + TileConfig::kColumnBytes +
                  ring.kBarrierBytes);
  if (threadIdx.x == 0) {
    pace.initialise();
    ring.initialise(kUsersOfStage);
  }
  __syncthreads();
  ptx::launch_dependents();
  // The warpgroup index from one lane, so that the compiler sees a branch that is uniform in the warp.
  const int warpgroup = __shfl_sync(cuda::kWarp, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    ptx::release_registers<TileConfig::kCopyRegisters>();
    if (threadIdx.x == 0) copy_tiles(&hidden, &weight, job, schedule, pace, ring, stages);
    if (threadIdx.x == cuda::kWarpThreads && schedule.lap_counter != nullptr) keep_pace(schedule, pace);
  } else {
    ptx::claim_registers<TileConfig::kMultiplyRegisters>();
    multiply_tiles<Format, kMode>(job, schedule, ring, stages, columns);
  }
}

}  // namespace isobit::linear_logp::sm90
