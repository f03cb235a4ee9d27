// linear_logp with mma.sync, for every GPU from SM80 on and for what the copy engine of SM90 cannot take.
//
//   hidden rows ---\                     shared memory, 3 stages                    registers
//                   > cp.async / loads -> [128 x 32 hidden | 128 x 32 weight] -> ldmatrix -> mma m16n8k16
//   weight rows ---/                                                                |
//                                    one leaf of 128 ids per row <- units <- 32 rows x 128 logits a warp
//
// One block per tile of 128 rows and one leaf of ids.
#pragma once

#include "device/ptx/synchronize.cuh"
#include "device/tile_order.h"
#include "ops/linear_logp/cuda/fragment.cuh"
#include "ops/linear_logp/cuda/slots.cuh"
#include "ops/linear_logp/sm80/operands.cuh"

namespace isobit::linear_logp::sm80 {

using cuda::Job;
using cuda::Mode;

// Two units of a row to the leaf's slot.
template <Mode kMode>
struct LeafSink {
  const Job& job;
  int32_t slot;
  int32_t row;       // this lane's first
  bool second_unit;  // exists
  Node first;

  __device__ __forceinline__ void plain(int h, const cuda::PairSum (&unit)[2]) {
    if (second_unit) {
      store(h, {0, numerics::add_rn(unit[0].s, unit[1].s), numerics::add_rn(unit[0].q, unit[1].q)});
    } else {
      store(h, {0, unit[0].s, unit[0].q});
    }
  }
  __device__ __forceinline__ void general(int h, int u, const Node& node) {
    if (u == 0) {
      first = node;
    } else {
      store(h, merge<kMode != Mode::kLogp>(first, node));
    }
  }
  // By lane h of the quad.
  __device__ __forceinline__ void store(int h, const Node& leaf) const {
    if (threadIdx.x % 4 != h || row + 8 * h >= job.p.rows) return;
    cuda::store_slot_of<kMode>(job.partials, slot, row + 8 * h, leaf);
  }
};

// Logits of the warp to one slot per row.
template <Mode kMode>
__device__ __forceinline__ void finish(const Job& job, float (&d)[2][64], device::TileOrder::Tile tile,
                                       float* columns) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int64_t id = job.origin + int64_t{tile.column} * Config::kIds;
  cuda::Place place = cuda::place_of<2>(job, id, columns + warp * cuda::kColumnWords * 32 + lane);
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    place.row = tile.row * Config::kRows + warp * Config::kWarpRows + 16 * m + lane / 4;
    LeafSink<kMode> sink{job, tile.column, place.row, id + kUnit < job.p.first_id + job.p.count, identity_node()};
    cuda::reduce_fragment<kMode, 2>(job, d[m], place, sink);
  }
}

template <class Format, Mode kMode, bool kAligned>
__global__ void __launch_bounds__(Config::kThreads)
    leaf_kernel(const __grid_constant__ Job job, const __grid_constant__ device::TileOrder order) {
  __shared__ __align__(128) unsigned char shared[Config::kSharedBytes];
  const Params& p = job.p;
  const device::TileOrder::Tile tile = order.at(blockIdx.x);
  const auto rows = static_cast<int32_t>(p.rows);
  const auto ids = static_cast<int32_t>(p.count);
  const auto width = static_cast<int32_t>(p.width);
  const auto first_id = static_cast<int32_t>(job.origin - p.first_id);
  const Matrix hidden{static_cast<const uint16_t*>(p.hidden), p.hidden_stride, tile.row * Config::kRows, rows, width};
  const Matrix weight{static_cast<const uint16_t*>(p.weight), p.weight_stride, first_id + tile.column * Config::kIds,
                      ids, width};
  ptx::launch_dependents();

  float d[2][64];
  const auto thread = static_cast<int>(threadIdx.x);
  const auto steps = static_cast<int32_t>((p.width + Config::kDepth - 1) / Config::kDepth);
  multiply_tile<Format, false, false>(
      d, rows - hidden.first, steps, shared, thread, [&](int32_t step, unsigned char* stage) {
        copy_operand<false, kAligned>(hidden, step * Config::kDepth, stage, thread);
        copy_operand<false, kAligned>(weight, step * Config::kDepth, stage + Config::kOperandBytes, thread);
      });
  // The stages become the columns of the epilogue.
  finish<kMode>(job, d, tile, reinterpret_cast<float*>(shared));
}

}  // namespace isobit::linear_logp::sm80
