// nvfp4_linear with mma.sync: one thread block per tile of 128 rows x 128 columns (nvfp4/tile.cuh), then
//
//   sum * 2^16 -> * alpha -> bf16 or fp32 -> global memory, two neighbours at a time where they are aligned
//
// Tiles of the same columns are neighbours in the grid, so that a weight tile is read from memory once and then from
// L2.
#pragma once

#include <cstdint>

#include "device/elements.cuh"
#include "nvfp4/tile.cuh"
#include "ops/nvfp4_linear/epilogue.h"

namespace isobit::nvfp4_linear::sm80 {

using device::Nvfp4Tile;

// What the kernel is told; goes to it by value.
struct Job {
  device::Nvfp4Operand x, weight;
  const float* x_scale_device;  // or null: x_scale
  const float* weight_scale_device;
  float x_scale, weight_scale;
  char* out;
  int64_t out_row_bytes;
  uint32_t row_tiles;
  bool pairs;  // two neighbours lie at a multiple of their size
};

__device__ __forceinline__ float read_scale(const float* device, float value) {
  return device != nullptr ? __ldg(device) : value;
}

template <class Format>
__global__ void __launch_bounds__(Nvfp4Tile::kThreads, 2) nvfp4_linear_tile(const __grid_constant__ Job job) {
  extern __shared__ __align__(128) unsigned char shared[];
  const device::Nvfp4Origin origin(job.row_tiles);
  Nvfp4Tile::Sums sums = {};
  device::multiply_nvfp4(job.x, job.weight, origin, shared, sums);

  const float alpha =
      alpha_of(read_scale(job.x_scale_device, job.x_scale), read_scale(job.weight_scale_device, job.weight_scale));
  const device::Nvfp4Place place;
#pragma unroll
  for (int m = 0; m < 4; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int64_t row = origin.row + place.row(m, h);
      if (row >= job.x.rows) continue;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int64_t column = origin.column + place.column(n);
        if (column >= job.weight.rows) continue;
        constexpr int64_t kSize = sizeof(typename device::Words<Format>::Element);
        device::store_pair<Format>(
            job.out + row * job.out_row_bytes + column * kSize, scaled(device::sum_of(sums[m][n][2 * h]), alpha),
            scaled(device::sum_of(sums[m][n][2 * h + 1]), alpha), job.pairs, column + 1 < job.weight.rows);
      }
    }
  }
}

}  // namespace isobit::nvfp4_linear::sm80
