// Where the block scale of (row, block) lies, in bytes, for the three layouts of NVFP4 scales.
// rows: rows of the matrix. blocks: 16-element blocks of a row, ceil(K / 16). The tiled layouts pad rows and blocks to
// whole tiles; padding bytes are written as +0, since a matrix unit multiplies what it finds there.
#pragma once

#include <cstdint>

#include "numerics/host_device.h"

namespace isobit::numerics {

enum class ScaleLayout : int32_t { kLinear = 0, k128x4 = 1, k8x4 = 2 };

ISOBIT_HD constexpr int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

ISOBIT_HD constexpr int64_t padded_scale_rows(ScaleLayout layout, int64_t rows) {
  return layout == ScaleLayout::k128x4 ? round_up(rows, 128) : layout == ScaleLayout::k8x4 ? round_up(rows, 8) : rows;
}

ISOBIT_HD constexpr int64_t padded_scale_blocks(ScaleLayout layout, int64_t blocks) {
  return layout == ScaleLayout::kLinear ? blocks : round_up(blocks, 4);
}

// Bytes of the whole buffer.
ISOBIT_HD constexpr int64_t scale_buffer_size(ScaleLayout layout, int64_t rows, int64_t blocks) {
  return padded_scale_rows(layout, rows) * padded_scale_blocks(layout, blocks);
}

ISOBIT_HD constexpr int64_t scale_offset_linear(int64_t row, int64_t block, int64_t blocks) {
  return row * blocks + block;
}

// Tiles of 128 rows x 4 blocks, 512 bytes each, consecutive along the blocks. In a tile, row r lies in line r mod 32
// (16 bytes) at quarter r div 32 (4 bytes): the order the block-scaled matrix instructions read. Row: an integer type;
// a kernel that knows its tile takes 32 bits.
template <class Row>
ISOBIT_HD constexpr Row scale_row_128x4(Row row) {
  return row % 32 * 16 + row % 128 / 32 * 4;
}
ISOBIT_HD constexpr int64_t scale_offset_128x4(int64_t row, int64_t block, int64_t blocks) {
  const int64_t tile = row / 128 * (round_up(blocks, 4) / 4) + block / 4;
  return tile * 512 + scale_row_128x4(row) + block % 4;
}

// Tiles of 8 rows x 4 blocks, 32 bytes each, consecutive along the blocks; row-major inside.
ISOBIT_HD constexpr int64_t scale_offset_8x4(int64_t row, int64_t block, int64_t blocks) {
  const int64_t tile = row / 8 * (round_up(blocks, 4) / 4) + block / 4;
  return tile * 32 + row % 8 * 4 + block % 4;
}

ISOBIT_HD constexpr int64_t scale_offset(ScaleLayout layout, int64_t row, int64_t block, int64_t blocks) {
  return layout == ScaleLayout::k128x4 ? scale_offset_128x4(row, block, blocks)
         : layout == ScaleLayout::k8x4 ? scale_offset_8x4(row, block, blocks)
                                       : scale_offset_linear(row, block, blocks);
}

}  // namespace isobit::numerics
