// 128 x 256 tiles of the product of two NVFP4 matrices with the block-scaled matrix instructions of SM100, SM103 and
// SM110. Persistent: a block takes one tile after the other.
//
//   codes, scales ── TMA ──> shared memory, 4 stages of K = 256
//   scales ── tcgen05.cp ──> tensor memory ┐
//   codes ─────────────────────────────────┴─ tcgen05.mma ──> sums in tensor memory ── tcgen05.ld ──> 128 registers
//
// Warps 0 to 7 finish tiles, one thread of warp 8 copies, one thread of warp 9 copies scales on and multiplies.
//
//   barrier      completed by                                  waited for by
//   ring full    the copies' bytes                             multiplying thread
//   ring empty   tcgen05.commit of every block of the cluster  copying thread
//   sums full    tcgen05.commit after the last step of a tile  warps 0 to 7
//   sums empty   one arrival of each of the warps 0 to 7       multiplying thread
//
// A finishing thread takes all its sums into registers at once and lets the next tile's multiplication begin before it
// looks at them: 256 columns leave no room in tensor memory for a second set of sums, and need none this way.
//
// kBlocks = 2: a cluster of two blocks takes two tiles of the same rows; each copies half of x to both.
#pragma once

#include <cstdint>

#include "device/ptx/memory.cuh"
#include "device/ptx/synchronize.cuh"
#include "device/ptx/tcgen05.cuh"
#include "device/ptx/tma.cuh"
#include "device/ring.cuh"
#include "nvfp4/scaled_tile.h"

namespace isobit::device {

template <int kBlocks>
class ScaledPipeline {
  static_assert(kBlocks == 1 || kBlocks == 2);
  using Tile = ScaledTile;
  using Position = RingPosition<Tile::kStages>;
  static constexpr uint16_t kAll = (1 << kBlocks) - 1;

 public:
  __device__ __forceinline__ ScaledPipeline(unsigned char* shared, const ScaledPlan& plan)
      : plan_(plan),
        stages_((ptx::shared_address(shared) + Tile::kAlignment - 1) / Tile::kAlignment * Tile::kAlignment),
        ring_(stages_ + Tile::kStages * Tile::kStageBytes) {
    sums_full_ = stages_ + Tile::kStages * Tile::kStageBytes + Ring<Tile::kStages>::kBarrierBytes;
    rank_ = kBlocks == 1 ? 0 : ptx::cluster_rank();
  }

  // All threads of the block. prepare() is called by the finishing threads and gives what finish() below wants.
  template <class Prepare>
  __device__ __forceinline__ void run(const ScaledOperands& operands, const Prepare& prepare) {
    begin();
    const uint32_t warp = threadIdx.x / 32;
    if (warp < Tile::kFinishWarps) {
      finish(prepare());
    } else if (warp == Tile::kCopyWarp) {
      if (ptx::elect_one()) copy(operands);
    } else if (ptx::elect_one()) {
      multiply();
    }
    __syncwarp();  // what follows is for whole warps
    end();
  }

 private:
  // All threads.
  __device__ __forceinline__ void begin() {
    if (threadIdx.x / 32 == Tile::kMultiplyWarp) {
      ptx::tensor_memory_allocate(address_place(), Tile::kTensorColumns);
      ptx::tensor_memory_allocate_no_more();
    }
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(sums_full_, 1);
      ptx::mbarrier_init(sums_empty(), Tile::kFinishWarps);
      ring_.initialise(kBlocks);
    }
    ptx::tensor_fence_before_signal();
    if constexpr (kBlocks == 1) {
      __syncthreads();
    } else {
      ptx::cluster_sync();  // the other block's copies and commits come to these barriers
    }
    ptx::tensor_fence_after_wait();
    tensor_ = ptx::load_shared(address_place());
  }

  // All threads. Nothing is on its way to this block any more: the copying thread has seen every stage released by all
  // blocks, and the finishing warps have read all sums.
  __device__ __forceinline__ void end() {
    ptx::tensor_fence_before_signal();
    __syncthreads();
    ptx::tensor_fence_after_wait();
    if (threadIdx.x / 32 == Tile::kMultiplyWarp) ptx::tensor_memory_free(tensor_, Tile::kTensorColumns);
  }

  // One thread of the copying warp.
  __device__ __forceinline__ void copy(const ScaledOperands& operands) const {
    Position at;
    for (uint32_t unit = first_unit(); unit < plan_.order.count(); unit += units_at_once()) {
      const TileOrder::Tile tile = plan_.order.at(unit);
      const int32_t column = kBlocks * tile.column + static_cast<int32_t>(rank_);
      for (int32_t stage = 0; stage < stages(); ++stage) {
        ring_.acquire(at, Tile::kStageBytes);
        const uint32_t to = stages_ + at.stage * Tile::kStageBytes;
        const uint32_t full = ring_.full(at.stage);
        copy_x(operands, to, full, stage, tile.row);
        ptx::tma_load_2d(to + Tile::kWeightAt, &operands.weight, full, stage * Tile::kRowBytes, column * Tile::kColumns,
                         ptx::L2Hint::kEvictNormal);
        ptx::tma_load_3d(to + Tile::kWeightScalesAt, &operands.weight_scales, full, 0, stage * Tile::kSteps,
                         column * (Tile::kColumns / Tile::kScaleRows), ptx::L2Hint::kEvictNormal);
        at.advance();
      }
    }
    for (int i = 0; i < Tile::kStages; ++i, at.advance()) ring_.wait_empty(at);
  }

  // One thread of the multiplying warp.
  __device__ __forceinline__ void multiply() const {
    Position at;
    uint32_t parity = 0;
    for (uint32_t unit = first_unit(); unit < plan_.order.count(); unit += units_at_once(), parity ^= 1) {
      wait(sums_empty(), parity ^ 1);
      for (int32_t stage = 0; stage < stages(); ++stage) {
        ring_.wait_full(at);
        ptx::tensor_fence_after_wait();
        multiply_stage(at.stage, plan_.steps - stage * Tile::kSteps, stage > 0);
        if constexpr (kBlocks == 1) {
          ptx::tensor_commit(ring_.empty(at.stage));
        } else {
          ptx::tensor_commit(ring_.empty(at.stage), kAll);
        }
        at.advance();
      }
      ptx::tensor_commit(sums_full_);
    }
  }

  // Warps 0 to 7. finish(row, column, sums): this thread's row of the product, and its first of 128 columns.
  template <class Finish>
  __device__ __forceinline__ void finish(const Finish& finish_columns) const {
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t half = warp / 4 * Tile::kThreadColumns;
    const uint32_t row = warp % 4 * 32;
    uint32_t parity = 0;
    for (uint32_t unit = first_unit(); unit < plan_.order.count(); unit += units_at_once(), parity ^= 1) {
      const TileOrder::Tile tile = plan_.order.at(unit);
      float sums[Tile::kThreadColumns];
      wait(sums_full_, parity);
      __syncwarp();
      ptx::tensor_fence_after_wait();
      ptx::tensor_load(sums, tensor_ + (row << 16) + half);
      ptx::tensor_fence_before_signal();
      if (lane == 0) ptx::mbarrier_arrive(sums_empty());
      finish_columns(int64_t{tile.row} * Tile::kRows + row + lane,
                     (int64_t{tile.column} * kBlocks + rank_) * Tile::kColumns + half, sums);
    }
  }

  __device__ __forceinline__ uint32_t sums_empty() const { return sums_full_ + 8; }
  __device__ __forceinline__ uint32_t address_place() const { return sums_full_ + 16; }
  __device__ __forceinline__ uint32_t first_unit() const { return blockIdx.x / kBlocks; }
  __device__ __forceinline__ uint32_t units_at_once() const { return gridDim.x / kBlocks; }
  __device__ __forceinline__ int32_t stages() const { return (plan_.steps + Tile::kSteps - 1) / Tile::kSteps; }

  static __device__ __forceinline__ void wait(uint32_t barrier, uint32_t parity) {
    while (!ptx::mbarrier_try_wait(barrier, parity)) {
    }
  }

  __device__ __forceinline__ void copy_x(const ScaledOperands& operands, uint32_t to, uint32_t full, int32_t stage,
                                         int32_t row_tile) const {
    const int32_t byte = stage * static_cast<int32_t>(Tile::kRowBytes);
    const int32_t row = row_tile * Tile::kRows;
    if constexpr (kBlocks == 1) {
      ptx::tma_load_2d(to, &operands.x, full, byte, row, ptx::L2Hint::kEvictNormal);
      ptx::tma_load_3d(to + Tile::kXScalesAt, &operands.x_scales, full, 0, stage * Tile::kSteps, row_tile,
                       ptx::L2Hint::kEvictNormal);
    } else {
      ptx::tma_multicast_2d(to + rank_ * (Tile::kXBytes / 2), &operands.x, full, byte,
                            row + static_cast<int32_t>(rank_) * (Tile::kRows / 2), kAll);
      ptx::tma_multicast_3d(to + Tile::kXScalesAt + rank_ * (Tile::kXScaleBytes / 2), &operands.x_scales, full, 0,
                            stage * Tile::kSteps + static_cast<int32_t>(rank_) * (Tile::kSteps / 2), row_tile, kAll);
    }
  }

  // `left`: steps that K still has.
  __device__ __forceinline__ void multiply_stage(uint32_t stage, int32_t left, bool accumulate) const {
    const uint32_t from = stages_ + stage * Tile::kStageBytes;
    const uint32_t x_scales = tensor_ + Tile::kScalesColumn + stage * Tile::kStageColumns;
    const uint32_t weight_scales = x_scales + Tile::kSteps * Tile::kXScaleColumns;
    const uint64_t x = scaled_operand_descriptor(from);
    const uint64_t weight = scaled_operand_descriptor(from + Tile::kWeightAt);
    const uint64_t x_scale_tiles = scale_tile_descriptor(from + Tile::kXScalesAt);
    const uint64_t weight_scale_tiles = scale_tile_descriptor(from + Tile::kWeightScalesAt);
    constexpr uint64_t kTile = Tile::kScaleTileBytes >> 4;
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
      if (step >= left) break;
      const uint32_t weight_column = weight_scales + step * Tile::kWeightScaleColumns;
      ptx::tensor_copy_scales(x_scales + step * Tile::kXScaleColumns, x_scale_tiles + step * kTile);
      ptx::tensor_copy_scales(weight_column, weight_scale_tiles + step * kTile);
      ptx::tensor_copy_scales(weight_column + 4, weight_scale_tiles + (Tile::kSteps + step) * kTile);
    }
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
      if (step >= left) break;
      ptx::tensor_mma_nvfp4(tensor_, x + step * kScaledStep, weight + step * kScaledStep, kScaledInstruction,
                            x_scales + step * Tile::kXScaleColumns, weight_scales + step * Tile::kWeightScaleColumns,
                            accumulate || step > 0);
    }
  }

  const ScaledPlan& plan_;
  uint32_t stages_;  // shared addresses
  Ring<Tile::kStages> ring_;
  uint32_t sums_full_;
  uint32_t tensor_ = 0;  // first column of tensor memory
  uint32_t rank_;        // in the cluster
};

}  // namespace isobit::device
