// Sizes of the product of few NVFP4 rows of x with few weight rows and a long K on SM90; for host and device.
#pragma once

#include <cstdint>

#include "nvfp4/few_rows.h"

namespace isobit::device {

// A block has 16 weight rows and all rows of x, at most kTokens. A stage is copied as for the product of few rows;
// decoded, it takes a slot.
template <int kTokens_, int kDecoders_, int kShare_>
struct Nvfp4ChainConfig {
  using Stage = Nvfp4FewStage<16, 128>;
  static constexpr int kTokens = kTokens_;
  static constexpr int kGroups = kTokens / 8;  // of rows of x that one instruction takes
  static constexpr int kShare = kShare_;       // a multiplying warp's
  static constexpr int kMultipliers = kGroups / kShare;
  static constexpr int kDecoders = kDecoders_;
  static constexpr int kWarps = kDecoders + kMultipliers;
  static constexpr int kThreads = 32 * (kWarps + 1);  // one more copies
  static constexpr int kStages = kGroups == 4 ? 12 : 16;
  static constexpr int kSlots = 16;
  static constexpr int kSlotSteps = Stage::kDepth / 16;       // matrix instructions
  static constexpr uint32_t kWeightBytes = kSlotSteps * 512;  // fragments of A
  static constexpr uint32_t kGroupBytes = kSlotSteps * 256;   // of B
  static constexpr uint32_t kSlotBytes = kWeightBytes + kGroups * kGroupBytes;

  static constexpr uint32_t kDecodedBytes = kDecoders * Stage::kDecodedWarp;
  static constexpr uint32_t kBarrierBytes = 2 * (kStages + kSlots) * 8;
  static constexpr uint32_t kSharedBytes =
      Stage::kAlignment + kStages * Stage::kBytes + kSlots * kSlotBytes + kDecodedBytes + kBarrierBytes;
  static_assert(kSharedBytes <= kNvfp4SharedLimit);
};

}  // namespace isobit::device
