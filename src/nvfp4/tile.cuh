// A 128 x 128 tile of the product of two NVFP4 matrices with mma.sync, for SM80 and newer.
//
//   x rows ──── 8 B codes + 1 B scale per block of 16 ─┐ registers   decode    shared memory, 2 stages
//   weight rows ── the same ───────────────────────────┴───────────> bf16 ──> [128 x 64 | 128 x 64] -> ldmatrix -> mma
//
// 256 threads, 8 warps of 64 x 32 outputs each. Every element is decoded once a tile. One accumulator per output takes
// the blocks of 16 in ascending k, which is the whole of the tensor-core rule of docs/bit-contract.md.
//
// The decode makes value * 2^-8 (nvfp4_decode.cuh). Sums are thus 2^-16 of the true ones, and nothing in between is
// near the ends of the range; `sum_of` takes the factor out again, exactly. The order of the 16 elements in a block is
// not that of memory, but the same in both operands, and a step's bits do not depend on it.
#pragma once

#include <cstdint>

#include "device/ptx/memory.cuh"
#include "device/ptx/mma_sync.cuh"
#include "numerics/bf16.h"
#include "numerics/ieee.h"
#include "numerics/scale_layout.h"
#include "nvfp4/decode.cuh"
#include "nvfp4/tile.h"

namespace isobit::device {

// Where a thread's sums lie in the tile: sums[m][n][2 h + e] is at row(m, h), column(n) + e.
struct Nvfp4Place {
  int warp_row, warp_column, lane;
  __device__ __forceinline__ Nvfp4Place() {
    const int warp = threadIdx.x / 32;
    warp_row = warp / Nvfp4Tile::kWarpsAcross * Nvfp4Tile::kWarpRows;
    warp_column = warp % Nvfp4Tile::kWarpsAcross * Nvfp4Tile::kWarpColumns;
    lane = threadIdx.x % 32;
  }
  __device__ __forceinline__ int row(int m, int h) const { return warp_row + 16 * m + 8 * h + lane / 4; }
  __device__ __forceinline__ int column(int n) const { return warp_column + 8 * n + lane % 4 * 2; }
};

// The first row of x and of the weight in this block's tile: tiles of the same weight rows are neighbours in the grid.
struct Nvfp4Origin {
  int64_t row, column;
  __device__ __forceinline__ explicit Nvfp4Origin(uint32_t row_tiles) {
    const uint32_t column_tile = blockIdx.x / row_tiles;
    const uint32_t row_tile = blockIdx.x - column_tile * row_tiles;
    row = int64_t{row_tile} * Nvfp4Tile::kRows;
    column = int64_t{column_tile} * Nvfp4Tile::kColumns;
  }
};

namespace nvfp4_detail {

// One block of 16 as it comes from memory.
struct Packed {
  uint32_t codes[2];
  uint32_t scale;
};

// Bytes between the scales of a block and of the block 64 rows below, in the same tile of 128 rows.
__device__ __forceinline__ int64_t scale_distance(numerics::ScaleLayout layout, int32_t blocks) {
  return layout == numerics::ScaleLayout::k128x4 ? 8 : 64 * numerics::padded_scale_blocks(layout, blocks);
}

// This thread's blocks of one operand: block threadIdx % 4 of every stage, of rows threadIdx / 4 and 64 further.
struct Reader {
  const uint8_t* codes;  // of the first row, and so scale
  const uint8_t* scale;
  int32_t blocks;  // that this thread still has to come to, 0 or less: none
  bool second;     // whether the row 64 further exists

  __device__ __forceinline__ Reader(const Nvfp4Operand& from, int64_t first_row) {
    const int block = threadIdx.x % Nvfp4Tile::kBlocks;
    const int64_t row = first_row + threadIdx.x / Nvfp4Tile::kBlocks;
    blocks = row < from.rows ? from.blocks - block : 0;
    second = row + 64 < from.rows;
    codes = from.codes + row * from.row_bytes + 8 * block;
    scale = from.scales + numerics::scale_offset(from.layout, row, 0, from.blocks) + block;
  }

  static __device__ __forceinline__ void read(const Nvfp4Operand& from, const uint8_t* codes, const uint8_t* scale,
                                              Packed& out) {
    if (from.aligned) {
      const uint2 pair = __ldg(reinterpret_cast<const uint2*>(codes));
      out.codes[0] = pair.x, out.codes[1] = pair.y;
    } else {
#pragma unroll
      for (int b = 0; b < 8; ++b) out.codes[b / 4] |= static_cast<uint32_t>(__ldg(codes + b)) << (8 * (b % 4));
    }
    out.scale = __ldg(scale);
  }

  // The next stage's blocks; zeros beyond the matrix.
  __device__ __forceinline__ void next(const Nvfp4Operand& from, Packed (&out)[2]) {
    out[0] = out[1] = {{0, 0}, 0};
    if (blocks > 0) {
      read(from, codes, scale, out[0]);
      if (second) read(from, codes + 64 * from.row_bytes, scale + scale_distance(from.layout, from.blocks), out[1]);
    }
    blocks -= Nvfp4Tile::kBlocks;
    codes += 8 * Nvfp4Tile::kBlocks;
    // Four blocks on, a tiled layout is one tile on.
    scale += from.layout == numerics::ScaleLayout::k128x4 ? 512 : from.layout == numerics::ScaleLayout::k8x4 ? 32 : 4;
  }
};

// Rows of 128 bytes; 16-byte chunk c of row r lies at c ^ r % 8, so that eight rows of a matrix load cover all banks.
__device__ __forceinline__ uint32_t chunk_offset(int row, int chunk) {
  return row * Nvfp4Tile::kRowBytes + ((chunk ^ (row % 8)) * 16);
}

__device__ __forceinline__ void store_decoded(const Packed (&packed)[2], unsigned char* matrix) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t scale = nvfp4_scale_pair(static_cast<uint8_t>(packed[i].scale));
    const int row = threadIdx.x / Nvfp4Tile::kBlocks + 64 * i;
    const int chunk = threadIdx.x % Nvfp4Tile::kBlocks * 2;
    *reinterpret_cast<uint4*>(matrix + chunk_offset(row, chunk)) = decode_nvfp4(packed[i].codes[0], scale);
    *reinterpret_cast<uint4*>(matrix + chunk_offset(row, chunk + 1)) = decode_nvfp4(packed[i].codes[1], scale);
  }
}

__device__ __forceinline__ void multiply_stage(uint32_t stage, const Nvfp4Place& place, Nvfp4Tile::Sums& sums) {
  const int lane = place.lane;
#pragma unroll
  for (int block = 0; block < Nvfp4Tile::kBlocks; ++block) {
    uint32_t b[2][4];
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      const int row = place.warp_column + 16 * p + lane / 16 * 8 + lane % 8;
      ptx::load_matrix_x4(b[p], stage + Nvfp4Tile::kMatrixBytes + chunk_offset(row, 2 * block + lane / 8 % 2));
    }
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      uint32_t a[4];
      ptx::load_matrix_x4(a, stage + chunk_offset(place.warp_row + 16 * m + lane % 16, 2 * block + lane / 16));
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        ptx::mma_m16n8k16<numerics::Bf16>(sums[m][n], a, b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
      }
    }
  }
}

}  // namespace nvfp4_detail

// Sums of the tile at `origin`. `shared`: Nvfp4Tile::kSharedBytes, aligned to 128.
__device__ __forceinline__ void multiply_nvfp4(const Nvfp4Operand& x, const Nvfp4Operand& weight,
                                               const Nvfp4Origin& origin, unsigned char* shared,
                                               Nvfp4Tile::Sums& sums) {
  using nvfp4_detail::Packed;
  const Nvfp4Place place;
  nvfp4_detail::Reader rows(x, origin.row);
  nvfp4_detail::Reader columns(weight, origin.column);
  Packed row_blocks[2], column_blocks[2];
  rows.next(x, row_blocks);
  columns.next(weight, column_blocks);
  const int32_t stages = (x.blocks + Nvfp4Tile::kBlocks - 1) / Nvfp4Tile::kBlocks;
  for (int32_t s = 0; s < stages; ++s) {
    unsigned char* const stage = shared + s % 2 * Nvfp4Tile::kStageBytes;
    nvfp4_detail::store_decoded(row_blocks, stage);
    nvfp4_detail::store_decoded(column_blocks, stage + Nvfp4Tile::kMatrixBytes);
    __syncthreads();  // the stage is whole, and all are done with the one that is filled next
    if (s + 1 < stages) {
      rows.next(x, row_blocks);
      columns.next(weight, column_blocks);
    }
    nvfp4_detail::multiply_stage(ptx::shared_address(stage), place, sums);
  }
}

}  // namespace isobit::device
