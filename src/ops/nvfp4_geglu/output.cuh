// Where the outputs of nvfp4_geglu go, for kernels that have 16 neighbouring outputs in one thread.
#pragma once

#include <cstdint>

#include "numerics/nvfp4_block.h"
#include "numerics/scale_layout.h"
#include "nvfp4/encode.cuh"
#include "ops/nvfp4_geglu/contract.h"

namespace isobit::nvfp4_geglu {

struct Output {
  uint8_t* codes;
  int64_t codes_row_bytes;
  uint8_t* scales;
  numerics::ScaleLayout layout;
  int32_t blocks;
  int64_t rows, padded_rows, padded_blocks;
  bool vector_stores;  // every block of codes starts at a multiple of 8 bytes
};

inline Output output_of(const Params& p) {
  return {p.out.codes,
          p.out.row_stride,
          p.out.scales,
          p.out.layout,
          static_cast<int32_t>(p.out_blocks()),
          p.rows,
          p.padded_rows(),
          p.padded_blocks(),
          reinterpret_cast<uintptr_t>(p.out.codes) % 8 == 0 && p.out.row_stride % 8 == 0};
}

// The scale bytes that belong to no block, cleared by `threads` threads together. Only the last of the rows of tiles
// has rows that do not exist; its words, four blocks of a row each, are visited in the order of memory.
__device__ __forceinline__ void clear_padding(const Output& out, int64_t thread, int64_t threads) {
  if (out.padded_rows > out.rows) {
    const int64_t tile_rows = out.layout == numerics::ScaleLayout::k128x4 ? 128 : 8;
    const int64_t first_row = out.padded_rows - tile_rows;
    const bool words = reinterpret_cast<uintptr_t>(out.scales) % 4 == 0;
    for (int64_t i = thread; i < out.padded_blocks / 4 * tile_rows; i += threads) {
      const int64_t in_tile = tile_rows == 128 ? i / 4 % 32 + i % 4 * 32 : i % 8;
      if (first_row + in_tile < out.rows) continue;
      uint8_t* const word = out.scales + first_row * out.padded_blocks + 4 * i;
      if (words) {
        *reinterpret_cast<uint32_t*>(word) = 0;
      } else {
#pragma unroll
        for (int b = 0; b < 4; ++b) word[b] = 0;
      }
    }
  }
  const int64_t beside = out.padded_blocks - out.blocks;  // padding blocks of a row
  for (int64_t i = thread; i < out.rows * beside; i += threads) {
    const int64_t row = i / beside;
    out.scales[numerics::scale_offset(out.layout, row, out.blocks + i - row * beside, out.blocks)] = 0;
  }
}

// Stores of a block's results. row < rows and block < blocks.
__device__ __forceinline__ void store_scale(const Output& out, int64_t row, int32_t block, uint8_t scale) {
  out.scales[numerics::scale_offset(out.layout, row, block, out.blocks)] = scale;
}
__device__ __forceinline__ void store_codes(const Output& out, int64_t row, int32_t block, const uint32_t (&codes)[2]) {
  device::store_nvfp4_codes(out.codes + row * out.codes_row_bytes + block * 8, out.vector_stores, codes);
}

// Where the results of one block of many rows go, with little arithmetic a row.
class BlockPlaces {
 public:
  __device__ __forceinline__ BlockPlaces(const Output& out, int32_t block)
      : layout_(out.layout),
        scales_(out.scales + numerics::scale_offset(out.layout, 0, block, out.blocks)),
        tile_bytes_(numerics::padded_scale_rows(out.layout, 1) * out.padded_blocks),
        codes_(out.codes + block * 8),
        codes_row_bytes_(out.codes_row_bytes) {}
  __device__ __forceinline__ uint8_t* scale(uint32_t row) const {
    if (layout_ == numerics::ScaleLayout::k128x4) {
      return scales_ + row / 128 * tile_bytes_ + numerics::scale_row_128x4(row);
    }
    if (layout_ == numerics::ScaleLayout::k8x4) {
      return scales_ + row / 8 * tile_bytes_ + numerics::scale_offset_8x4(row % 8, 0, 1);
    }
    return scales_ + row * tile_bytes_;
  }
  __device__ __forceinline__ uint8_t* codes(uint32_t row) const { return codes_ + row * codes_row_bytes_; }

 private:
  numerics::ScaleLayout layout_;
  uint8_t* scales_;     // of row 0
  int64_t tile_bytes_;  // of a tile of rows
  uint8_t* codes_;
  int64_t codes_row_bytes_;
};

}  // namespace isobit::nvfp4_geglu
