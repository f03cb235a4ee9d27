// Sizes of the WGMMA pipeline of NVFP4 products; for host and device.
#pragma once

#include <cstdint>

#include "core/runtime.h"

namespace isobit::device {

// A block's tile is kTokens rows of x by 64 weight rows for each of kGroups warpgroups; in a last round that would not
// be full, kLastTokens rows of x, so that more blocks have a part in it (0: it has tiles like the others).
// kStagingRow: bytes of shared memory that the epilogue wants for a token and group; kMoreBytes: for all of it.
template <int kTokens_, int kGroups_, int kLastTokens_ = 0, int kStagingRow = 0, int kMoreBytes = 0>
struct Nvfp4WgmmaConfig {
  static constexpr int kTokens = kTokens_;
  static constexpr int kLastTokens = kLastTokens_;
  static constexpr int kGroups = kGroups_;
  static constexpr int kDepth = 64;  // elements of K a stage: one row of the 128-byte swizzle
  static constexpr int kWarpgroup = 128;
  static constexpr int kThreads = kWarpgroup * (1 + kGroups);
  static constexpr int kRows = 64 * kGroups;  // of the weight
  static constexpr int kPairs = kRows / 2;    // neighbouring weight rows, 2 i and 2 i + 1
  // A tile's stages are whole rounds of the ring, which saves a loop's arithmetic about places (wgmma_rounds.cuh).
  // H200, 2026-11-30, nvfp4_geglu: 1.4 % faster with 200 tokens, 1 to 2 % slower with 208, 224 and 248.
  static constexpr bool kRounds = kGroups == 2 && kTokens == 200;
  static constexpr int kMostStages = kRounds ? 4 : 16;
  static constexpr int kStepsMultiple = kRounds ? kMostStages : 1;

  static constexpr uint32_t kSharedLimit = 227 * 1024;
  static constexpr uint32_t kAlignment = 1024;
  static constexpr uint32_t kTokenRow = 2 * kDepth;
  static constexpr uint32_t kTokenBytes = kTokens * kTokenRow;
  static constexpr uint32_t kCodeRow = kDepth / 2;
  static constexpr uint32_t kCodeBytes = kRows * kCodeRow;
  static constexpr uint32_t kScaleTile = 512;  // 128 rows x 4 blocks
  static constexpr int kScaleTiles = (kRows + 127) / 128;
  static constexpr uint32_t kWeightBytes = kCodeBytes + kScaleTiles * kScaleTile;
  static constexpr uint32_t kStageBytes = kTokenBytes + kWeightBytes;
  static constexpr uint32_t kStagingGroup = kTokens * kStagingRow;
  static constexpr uint32_t kStagingBytes = kGroups * kStagingGroup;
  static constexpr uint32_t kScaleWarp = 16 * 4 * 4;  // decoded: 16 rows x 4 blocks, bf16 twice
  static constexpr uint32_t kScaleBytes = kGroups * 4 * kScaleWarp;
  static constexpr uint32_t kBarrierBytes = (2 * kMostStages + 2 * kGroups) * 8;
  static constexpr uint32_t kApart =
      kAlignment + kStagingBytes + kScaleBytes + kBarrierBytes + kMoreBytes;  // from the ring
  static constexpr uint32_t kFits = (kSharedLimit - kApart) / kStageBytes;
  static constexpr int kStages = kFits < kMostStages ? static_cast<int>(kFits) : kMostStages;
  static constexpr uint32_t kSharedBytes = kApart + kStages * kStageBytes;
  static_assert(kTokens % 8 == 0 && kTokens <= 256 && kLastTokens % 8 == 0 && kLastTokens < kTokens && kStages >= 3);

  // Whether a tile's first stage is begun with under the end of the tile before. With one group a tile may begin in the
  // middle of a scale tile; the others want more registers than there are.
  static constexpr bool kFollows = kGroups == 2 && kTokens < 256;

  // With two multiplying warpgroups the one that copies gives registers away: 56 + 2 * 224 = 3 * 168, what the block
  // has at entry. With four small ones there is nothing to move.
  static constexpr bool kMovesRegisters = kGroups == 2;
  static constexpr int kSpareRegisters = 56;
  static constexpr int kMultiplyRegisters = 224;
};

// What the pipeline is told beside its tensor maps; goes to the kernel by value.
struct Nvfp4WgmmaPlan {
  const uint8_t* weight_scales;              // in the 128x4 layout
  int32_t scale_tiles;                       // of 128 rows
  int32_t token_tiles, row_tiles;            // of full tiles
  int32_t last_token_tiles, last_row_tiles;  // of tiles of the last round, whose rows of the weight follow; or 0
  int32_t steps;                             // stages a tile
};

// The tensor maps of a launch.
struct Nvfp4WgmmaMaps {
  TensorMap x, last_x;  // in boxes of kTokens and of kLastTokens
  TensorMap codes;
};

// Where x lies decoded, and which rows of it: written by the unpacking kernel, read by the product.
struct Nvfp4Unpack {
  uint8_t* out;  // [rows, K] bf16
  int64_t first_row;
  int64_t rows;
};

}  // namespace isobit::device
