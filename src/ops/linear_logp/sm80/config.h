// Tile of the mma.sync kernels.
#pragma once

#include <cstdint>

#include "ops/linear_logp/tree.h"

namespace isobit::linear_logp::sm80 {

struct Config {
  static constexpr int kRows = 128;
  static constexpr int kIds = 128;
  static constexpr int kDepth = 32;  // elements of H per stage: 64 bytes a row
  static constexpr int kStages = 3;
  static constexpr int kBlocks = 2;  // of a multiprocessor at a time, in the backward pass
  static constexpr int kWarps = 4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kWarpRows = kRows / kWarps;
  static constexpr int kGroupRows = 2048;  // of the tile order

  static constexpr uint32_t kRowBytes = 2 * kDepth;
  static constexpr uint32_t kTransposedRowBytes = 2 * kRows;
  static constexpr uint32_t kOperandBytes = kRows * kRowBytes;
  static constexpr uint32_t kStageBytes = 2 * kOperandBytes;
  static constexpr uint32_t kSharedBytes = kStages * kStageBytes;
};
static_assert(Config::kSharedBytes <= 48 * 1024, "two blocks fit where a multiprocessor has 100 KB");
static_assert(Config::kIds == kLeaf, "a tile is a leaf");
static_assert(Config::kIds == Config::kRows, "both operands of a stage have one size");
static_assert(Config::kWarpRows == 32, "a warp's fragment is two m16 tiles");

// Rows of a warp's fragment; ops/linear_logp/cuda/backward_sums.cuh.
struct WarpFragment {
  static constexpr int kWarpRows = Config::kWarpRows;
  static constexpr int kBlockRows = 16;
  static constexpr bool kMasksBorders = false;
};

}  // namespace isobit::linear_logp::sm80
