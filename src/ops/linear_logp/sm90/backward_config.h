// Tiles, stages and registers of the backward pass's WGMMA products.
#pragma once

#include <cstdint>

#include "ops/linear_logp/cuda/backward_tiles.h"
#include "ops/linear_logp/sm90/config.h"

namespace isobit::linear_logp::sm90 {

// The two warpgroups of a block take whole units in turn, as in the forward pass.
struct ProductConfig {
  static constexpr int kStages = 5;
  static constexpr int kCopyRegisters = 24;
  static constexpr int kMultiplyRegisters = 240;
  static constexpr uint32_t kBytesA = cuda::kTileRows * kRowBytes;
  static constexpr uint32_t kStageBytes = kBytesA + cuda::kWideColumns * kRowBytes;
  static constexpr uint32_t kColumnBytes = 16 * 4 * 2 * kWarpgroup;  // one column of 16 words a thread
  static constexpr uint32_t kBarrierBytes = 2 * kStages * 8;
  static constexpr uint32_t kSharedBytes = kSwizzleAlignment + kStages * kStageBytes + kColumnBytes + kBarrierBytes;
};
static_assert(ProductConfig::kSharedBytes <= kSharedLimit, "shared memory of one block");
static_assert(ProductConfig::kCopyRegisters + 2 * ProductConfig::kMultiplyRegisters <= 3 * kEntryRegisters,
              "registers");

// The four warps of a warpgroup side by side, two m64 blocks below each other.
struct WarpgroupFragment {
  static constexpr int kWarpRows = 16;
  static constexpr int kBlockRows = 64;
  static constexpr bool kMasksBorders = true;
};

}  // namespace isobit::linear_logp::sm90
