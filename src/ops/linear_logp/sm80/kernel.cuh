// linear_logp with mma.sync, for every GPU from SM80 on and for what the copy engine of SM90 cannot take.
//
//   hidden rows ---\                     shared memory, 3 stages                    registers
//                   > cp.async / loads -> [128 x 32 hidden | 128 x 32 weight] -> ldmatrix -> mma m16n8k16
//   weight rows ---/                                                                |
//                                    one leaf of 128 ids per row <- units <- 32 rows x 128 logits a warp
//
// One block per tile of 128 rows and one leaf of ids. Rows of 64 bytes are swizzled in 16-byte chunks: chunk c of row r
// lies at c ^ (r / 2) % 4, so the eight rows that a matrix load reads cover all banks. Products of the k16 groups go in
// ascending order into one accumulator per logit, which is the whole of the bit contract's section 2.
#pragma once

#include "device/ptx/cp_async.cuh"
#include "device/ptx/memory.cuh"
#include "device/ptx/mma_sync.cuh"
#include "device/ptx/synchronize.cuh"
#include "device/tile_order.h"
#include "ops/linear_logp/cuda/fragment.cuh"
#include "ops/linear_logp/cuda/slots.cuh"
#include "ops/linear_logp/sm80/config.h"

namespace isobit::linear_logp::sm80 {

namespace ptx = device::ptx;
using cuda::Job;
using cuda::Mode;

// A matrix of 16-bit elements whose rows the block copies: `rows` of them exist from `data` on.
struct Source {
  const uint16_t* data;
  int64_t stride;
  int64_t first;  // first row of the tile; rows below 0 and from `rows` on are zeros
  int64_t rows;
  int64_t width;
};

__device__ __forceinline__ uint32_t chunk_offset(int row, int chunk) {
  return row * Config::kRowBytes + ((chunk ^ (row / 2 % 4)) * 16);
}

// Eight elements as they come, one by one: any address, any width.
__device__ __forceinline__ uint4 load_slowly(const uint16_t* from, int64_t count) {
  uint32_t word[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t low = 2 * i < count ? from[2 * i] : 0u;
    const uint32_t high = 2 * i + 1 < count ? from[2 * i + 1] : 0u;
    word[i] = low | high << 16;
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

// 128 rows x 32 elements from element k on, by all threads. kAligned: every row is aligned to 16 bytes and the width is
// a multiple of 8.
template <bool kAligned>
__device__ __forceinline__ void copy_tile(const Source& source, int64_t k, unsigned char* shared) {
  constexpr int kChunks = Config::kRows * 4;
  // The slow loads need registers of their own, one chunk's at a time.
  constexpr int kUnroll = kAligned ? kChunks / Config::kThreads : 1;
#pragma unroll kUnroll
  for (int i = 0; i < kChunks / Config::kThreads; ++i) {
    const int index = i * Config::kThreads + threadIdx.x;
    const int row = index / 4;
    const int chunk = index % 4;
    const int64_t from_row = source.first + row;
    const int64_t from_k = k + 8 * chunk;
    const bool exists = from_row >= 0 && from_row < source.rows && from_k < source.width;
    const uint16_t* from = exists ? source.data + from_row * source.stride + from_k : source.data;
    unsigned char* to = shared + chunk_offset(row, chunk);
    if constexpr (kAligned) {
      ptx::copy_async_16(ptx::shared_address(to), from, exists ? 16 : 0);
    } else {
      *reinterpret_cast<uint4*>(to) = load_slowly(from, exists ? source.width - from_k : 0);
    }
  }
}

template <bool kAligned>
__device__ __forceinline__ void copy_stage(const Source& hidden, const Source& weight, int64_t step,
                                           unsigned char* shared) {
  unsigned char* stage = shared + step % Config::kStages * Config::kStageBytes;
  copy_tile<kAligned>(hidden, step * Config::kDepth, stage);
  copy_tile<kAligned>(weight, step * Config::kDepth, stage + Config::kHiddenBytes);
}

// The warp's 32 rows x 128 ids of one stage.
template <class Format>
__device__ __forceinline__ void multiply_stage(uint32_t stage, float (&d)[2][64]) {
  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * Config::kWarpRows;
#pragma unroll
  for (int k16 = 0; k16 < Config::kDepth / 16; ++k16) {
    uint32_t a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      ptx::load_matrix_x4(a[m], stage + chunk_offset(warp_row + 16 * m + lane % 16, 2 * k16 + lane / 16));
    }
#pragma unroll
    for (int pair = 0; pair < Config::kIds / 16; ++pair) {
      uint32_t b[4];
      const int id = 16 * pair + lane / 16 * 8 + lane % 8;
      ptx::load_matrix_x4(b, stage + Config::kHiddenBytes + chunk_offset(id, 2 * k16 + lane / 8 % 2));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        ptx::mma_m16n8k16<Format>(&d[m][8 * pair], a[m], b[0], b[1]);
        ptx::mma_m16n8k16<Format>(&d[m][8 * pair + 4], a[m], b[2], b[3]);
      }
    }
  }
}

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
  const Source hidden{static_cast<const uint16_t*>(p.hidden), p.hidden_stride, int64_t{tile.row} * Config::kRows,
                      p.rows, p.width};
  const Source weight{static_cast<const uint16_t*>(p.weight), p.weight_stride,
                      job.origin - p.first_id + int64_t{tile.column} * Config::kIds, p.count, p.width};
  ptx::launch_dependents();

  float d[2][64] = {};
  const int64_t steps = (p.width + Config::kDepth - 1) / Config::kDepth;
  // Two stages under way; the third is the one that is multiplied.
  for (int ahead = 0; ahead < Config::kStages - 1; ++ahead) {
    if (ahead < steps) copy_stage<kAligned>(hidden, weight, ahead, shared);
    ptx::copy_async_commit();
  }
  for (int64_t step = 0; step < steps; ++step) {
    ptx::copy_async_wait<Config::kStages - 2>();
    __syncthreads();  // the stage has arrived for all, and all are done with the one that is filled next
    const int64_t ahead = step + Config::kStages - 1;
    if (ahead < steps) copy_stage<kAligned>(hidden, weight, ahead, shared);
    ptx::copy_async_commit();
    multiply_stage<Format>(ptx::shared_address(shared) + step % Config::kStages * Config::kStageBytes, d);
  }
  __syncthreads();  // the stages become the columns of the epilogue
  finish<kMode>(job, d, tile, reinterpret_cast<float*>(shared));
}

}  // namespace isobit::linear_logp::sm80
