// nvfp4_geglu with mma.sync: one thread block per tile of 128 rows x 128 weight rows (nvfp4/tile.cuh), which are
// 64 outputs. Gate and up of an output are neighbours in one thread's fragment:
//
//   sums (gate, up) -> * 2^16 -> * scales -> gelu(gate) up -> largest of 16 within 4 lanes -> scale, 16 codes
//   lane t of a quad holds outputs t, t + 4, t + 8, t + 12 of a block; two exchanges bring its 8 bytes to one lane
//
// A warp's 32 columns are one block of 16 outputs a row. Scale bytes of padding rows and blocks are written as 0: they
// all lie in the tiles of the grid.
#pragma once

#include <cstdint>

#include "nvfp4/encode.cuh"
#include "nvfp4/tile.cuh"
#include "ops/nvfp4_geglu/operands.cuh"

namespace isobit::nvfp4_geglu::sm80 {

using device::Nvfp4Tile;
using numerics::Gelu;

// What the kernel is told; goes to it by value.
struct Job {
  device::Nvfp4Operand x, weight;
  GlobalScales scales;
  uint8_t* codes;
  int64_t codes_row_bytes;
  uint8_t* out_scales;
  numerics::ScaleLayout out_layout;
  uint32_t row_tiles;
  int64_t padded_rows, padded_blocks;
  int32_t out_blocks;
  bool vector_stores;  // every block of codes starts at a multiple of 8 bytes
};

// A block as the four lanes of a quad hold it after encoding: the whole 8 bytes in lane 0.
struct Encoded {
  uint32_t codes[2];
  uint8_t scale;
};

__device__ __forceinline__ void store_block(const Job& job, int64_t row, int64_t block, const Encoded& encoded) {
  if (row >= job.padded_rows || block >= job.padded_blocks) return;
  const bool exists = row < job.x.rows && block < job.out_blocks;
  const uint32_t lane = threadIdx.x % 4;
  if (lane == 1) {
    job.out_scales[numerics::scale_offset(job.out_layout, row, block, job.out_blocks)] =
        exists ? encoded.scale : uint8_t{0};
  }
  if (lane != 0 || !exists) return;
  device::store_nvfp4_codes(job.codes + row * job.codes_row_bytes + block * 8, job.vector_stores, encoded.codes);
}

template <Gelu kGelu>
__global__ void __launch_bounds__(Nvfp4Tile::kThreads, 2) nvfp4_geglu_tile(const __grid_constant__ Job job) {
  extern __shared__ __align__(128) unsigned char shared[];
  const device::Nvfp4Origin origin(job.row_tiles);
  Nvfp4Tile::Sums sums = {};
  device::multiply_nvfp4(job.x, job.weight, origin, shared, sums);

  const Scales scales = job.scales.all();
  const device::Nvfp4Place place;
  const int64_t block = (origin.column + place.warp_column) / 32;
#pragma unroll
  for (int m = 0; m < 4; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float hidden[4];
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        hidden[n] = hidden_of<kGelu>(device::sum_of(sums[m][n][2 * h]),
                                     plus_zero(device::sum_of(sums[m][n][2 * h + 1])), scales);
      }
      Encoded encoded;
      encoded.scale = device::encode_nvfp4_quad(scales.out, hidden, encoded.codes);
      store_block(job, origin.row + place.row(m, h), block, encoded);
    }
  }
}

}  // namespace isobit::nvfp4_geglu::sm80
