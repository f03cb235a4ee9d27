// The three products of a chunk of the backward pass and the tiles that they are cut into; the same for every
// instruction.
//
//   product    A                              B                                result
//   kLogits    hidden [valid rows, H]         weight [ids, H]                  dz [valid rows, ids]
//   kHidden    dz [valid rows, ids]           weight [ids, H], transposed      a segment's d_hidden [valid rows, H]
//   kWeight    dz [valid rows, ids], transp.  hidden [valid rows, H], transp.  d_weight [ids, H]
#pragma once

#include <cstdint>

#include "numerics/host_device.h"

namespace isobit::linear_logp::cuda {

enum class Product {
  kLogits,  // logits = hidden · weightᵀ, and from them dz; K = H
  kHidden,  // partial d_hidden = dz · weight per segment; K = ids of the segment
  kWeight   // d_weight = dzᵀ · hidden; K = valid rows
};

inline constexpr int kTileRows = 128;     // of the result
inline constexpr int kWideColumns = 192;  // 192 as long as 128 or nothing is left over
inline constexpr int kNarrowColumns = 128;
inline constexpr int kGroupRows = 2048;  // of the tile order

// How a product's columns are cut: wide tiles first. Covers `columns` in multiples of 64 without a gap, except that one
// of 64 alone takes a narrow tile.
struct ColumnCut {
  int32_t wide, narrow;

  ISOBIT_HD constexpr int32_t count() const { return wide + narrow; }
  ISOBIT_HD constexpr bool is_wide(int32_t tile) const { return tile < wide; }
  ISOBIT_HD constexpr int32_t first(int32_t tile) const {
    return tile < wide ? tile * kWideColumns : wide * kWideColumns + (tile - wide) * kNarrowColumns;
  }
};
ISOBIT_HD constexpr ColumnCut cut_columns(int64_t columns) {
  const auto blocks = static_cast<int32_t>((columns + 63) / 64);
  const int32_t narrow = blocks == 1 ? 1 : blocks % 3 == 0 ? 0 : blocks % 3 == 2 ? 1 : 2;
  return {(blocks - 2 * narrow) < 0 ? 0 : (blocks - 2 * narrow) / 3, narrow};
}

// What a launch passes to its product.
struct ProductPlan {
  ColumnCut columns;
  int32_t slices;  // units of one tile: segments in kHidden
  int32_t group;   // row tiles of the tile order
};

// A tile of the result, for one slice of the ids.
struct Unit {
  int32_t slice;
  int32_t row;  // first of kTileRows: valid row of the chunk, or id of the slice in kWeight
  int32_t column;
  bool wide;
};

}  // namespace isobit::linear_logp::cuda
