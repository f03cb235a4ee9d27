// Tiles, stages and registers of the backward pass's WGMMA products.
#pragma once

#include <cstdint>

#include "ops/linear_logp/sm90/config.h"

namespace isobit::linear_logp::sm90 {

// The three products of a chunk. The two warpgroups of a block take whole units in turn, as in the forward pass.
enum class Product {
  kLogits,  // logits = hidden · weightᵀ, and from them dz; K = H
  kHidden,  // partial d_hidden = dz · weight per segment; K = ids of the segment
  kWeight   // d_weight = dzᵀ · hidden; K = valid rows
};

struct ProductConfig {
  static constexpr int kRows = 128;  // of the result
  static constexpr int kWide = 192;  // columns: 192 as long as 128 or nothing is left over
  static constexpr int kNarrow = 128;
  static constexpr int kStages = 5;
  static constexpr int kGroupRows = 2048;  // of the tile order
  static constexpr int kCopyRegisters = 24;
  static constexpr int kMultiplyRegisters = 240;
  static constexpr uint32_t kBytesA = kRows * kRowBytes;
  static constexpr uint32_t kStageBytes = kBytesA + kWide * kRowBytes;
  static constexpr uint32_t kColumnBytes = 16 * 4 * 2 * kWarpgroup;  // one column of 16 words a thread
  static constexpr uint32_t kBarrierBytes = 2 * kStages * 8;
  static constexpr uint32_t kSharedBytes = kSwizzleAlignment + kStages * kStageBytes + kColumnBytes + kBarrierBytes;
};
static_assert(ProductConfig::kSharedBytes <= kSharedLimit, "shared memory of one block");
static_assert(ProductConfig::kCopyRegisters + 2 * ProductConfig::kMultiplyRegisters <= 3 * kEntryRegisters,
              "registers");

// How a product's columns are cut: wide tiles first. Covers `columns` in multiples of 64 without a gap, except that one
// of 64 alone takes a narrow tile.
struct ColumnCut {
  int32_t wide, narrow;

  ISOBIT_HD constexpr int32_t count() const { return wide + narrow; }
  ISOBIT_HD constexpr bool is_wide(int32_t tile) const { return tile < wide; }
  ISOBIT_HD constexpr int32_t first(int32_t tile) const {
    return tile < wide ? tile * ProductConfig::kWide
                       : wide * ProductConfig::kWide + (tile - wide) * ProductConfig::kNarrow;
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

}  // namespace isobit::linear_logp::sm90
