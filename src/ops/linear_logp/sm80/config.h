// Tile of the mma.sync kernel.
#pragma once

#include <cstdint>

#include "ops/linear_logp/tree.h"

namespace isobit::linear_logp::sm80 {

struct Config {
  static constexpr int kRows = 128;
  static constexpr int kIds = 128;
  static constexpr int kDepth = 32;  // elements of H per stage: 64 bytes a row
  static constexpr int kStages = 3;
  static constexpr int kWarps = 4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kWarpRows = kRows / kWarps;
  static constexpr int kGroupRows = 2048;  // of the tile order

  static constexpr uint32_t kRowBytes = 2 * kDepth;
  static constexpr uint32_t kHiddenBytes = kRows * kRowBytes;
  static constexpr uint32_t kWeightBytes = kIds * kRowBytes;
  static constexpr uint32_t kStageBytes = kHiddenBytes + kWeightBytes;
  static constexpr uint32_t kSharedBytes = kStages * kStageBytes;
};
static_assert(Config::kSharedBytes <= 48 * 1024, "two blocks fit where a multiprocessor has 100 KB");
static_assert(Config::kIds == kLeaf, "a tile is a leaf");
static_assert(Config::kWarpRows == 32, "a warp's fragment is two m16 tiles");

}  // namespace isobit::linear_logp::sm80
