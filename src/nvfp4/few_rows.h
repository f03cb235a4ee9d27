// Sizes of the products of few NVFP4 rows of x on SM90; for host and device.
#pragma once

#include <cstdint>

namespace isobit::device {

constexpr uint32_t kNvfp4SharedLimit = 227 * 1024;  // of a block
constexpr uint32_t kNvfp4ShortRing = 64 * 1024;     // of stages
constexpr int kNvfp4MostDepth = 256;                // of a stage; x is padded with zeros to a multiple

// Of x in bf16, as a block keeps it.
constexpr uint32_t nvfp4_few_most_bytes(int64_t tokens) { return (tokens <= 16 ? 64 : 128) * 1024; }

// A stage of packed weights: kDepth elements of kRows rows, even rows before odd ones, and their scales. A row's codes
// are a row of the swizzle of that width.
template <int kRows_, int kDepth_>
struct Nvfp4FewStage {
  static constexpr int kRows = kRows_;
  static constexpr int kDepth = kDepth_;
  static constexpr int kPairs = kRows / 2;     // neighbouring weight rows, 2 i and 2 i + 1
  static constexpr int kSteps = kDepth / 64;   // tiles of scales deep
  static constexpr int kChunks = kDepth / 32;  // of 16 bytes, two blocks, a row
  static constexpr uint32_t kCodeRow = kDepth / 2;
  static_assert(kDepth == 128 || kDepth == 256);
  static constexpr uint32_t kOddRows = kPairs * kCodeRow;  // from the even rows to the odd ones
  static constexpr uint32_t kCodeBytes = kRows * kCodeRow;
  static constexpr uint32_t kScaleTile = 512;  // 128 rows x 4 blocks
  static constexpr int kScaleTiles = (kRows + 127) / 128;
  static constexpr uint32_t kBytes = kCodeBytes + kScaleTiles * kSteps * kScaleTile;
  static constexpr uint32_t kAlignment = 1024;
  static constexpr uint32_t kDecodedWarp = kSteps * 16 * 4 * 2;  // bf16 scales of a warp's 16 rows
};

// A block has kRows weight rows, 16 a warp that multiplies, and all rows of x, at most kTokens.
template <int kTokens_, int kRows_, int kDepth_, int kStages_, bool kWgmma_>
struct Nvfp4FewConfig {
  using Stage = Nvfp4FewStage<kRows_, kDepth_>;
  static constexpr int kTokens = kTokens_;
  static constexpr int kGroups = kTokens / 8;  // of rows of x that one instruction takes
  static constexpr int kWarps = Stage::kRows / 16;
  static constexpr int kThreads = 32 * (kWarps + 1);  // one more copies
  static constexpr int kStages = kStages_;
  static constexpr bool kWgmma = kWgmma_;  // instead of mma.sync

  static constexpr uint32_t kDecodedBytes = kWarps * Stage::kDecodedWarp;
  static constexpr uint32_t kBarrierBytes = 2 * kStages * 8;
  static constexpr uint32_t kHiddenBytes = kTokens * Stage::kPairs * 4;  // which an epilogue may put in x's place
  static constexpr uint32_t kSharedBytes =
      2 * Stage::kAlignment + kStages * Stage::kBytes + kDecodedBytes + kBarrierBytes;  // without x
  static_assert(kSharedBytes + nvfp4_few_most_bytes(kTokens) <= kNvfp4SharedLimit);
  static_assert(kHiddenBytes <= nvfp4_few_most_bytes(kTokens));
};

// What a pipeline is told beside its tensor map; goes to the kernel by value.
struct Nvfp4FewPlan {
  const uint8_t* weight_scales;  // in the 128x4 layout
  int32_t scale_tiles;           // of 128 rows
  int32_t steps;                 // tiles of scales deep: K / 64
};

}  // namespace isobit::device
