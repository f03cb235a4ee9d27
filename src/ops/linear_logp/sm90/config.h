// Tiles, stages and registers of the two WGMMA schedules.
#pragma once

#include <cstdint>

#include "ops/linear_logp/tree.h"

namespace isobit::linear_logp::sm90 {

inline constexpr uint32_t kSharedLimit = 227 * 1024;
inline constexpr uint32_t kSwizzleAlignment = 1024;
inline constexpr int kDepth = 64;  // elements of H per stage: one row of the 128-byte swizzle
inline constexpr uint32_t kRowBytes = 2 * kDepth;
inline constexpr uint32_t kTransposedBlock = kDepth * kRowBytes;  // 64 elements of kDepth k
inline constexpr int kWarpgroup = 128;
inline constexpr int kThreads = 3 * kWarpgroup;  // one warpgroup that copies, two that multiply
inline constexpr int kUsersOfStage = 4;          // warps of one warpgroup

// More than 64 rows: the rows are the M operand; the two warpgroups take whole tiles in turn, so that one multiplies
// while the other reduces.
struct TileConfig {
  static constexpr int kRows = 128;  // two m64
  static constexpr int kIds = 192;   // n192, three units
  static constexpr int kUnits = kIds / static_cast<int>(kUnit);
  static constexpr int kStages = 5;
  // Row tiles that share what columns of W run at a time, and what of hidden stays in L2 beside them: 16 MB, which is a
  // group at H = 4096 (groups of 4,096 rows there read 7.9 GB from DRAM instead of 2.9, H200, 2026-11-30). Where it is
  // more than a group, bands of columns: 0.57 GB instead of 1.09 at 4096, 2048, 131072.
  static constexpr int kGroupTiles = 16;
  static constexpr int kBandTiles = 8;
  static constexpr int64_t kResidentBytes = int64_t{16} << 20;
  static constexpr int kCopyRegisters = 24;
  static constexpr int kMultiplyRegisters = 240;
  static constexpr uint32_t kHiddenBytes = kRows * kRowBytes;
  static constexpr uint32_t kStageBytes = kHiddenBytes + kIds * kRowBytes;
  static constexpr uint32_t kColumnBytes = 16 * 4 * 2 * kWarpgroup;   // one column of 16 words a thread
  static constexpr uint32_t kBarrierBytes = 2 * kStages * 8 + 2 * 8;  // of the ring and of the pace
  static constexpr uint32_t kSharedBytes = kSwizzleAlignment + kStages * kStageBytes + kColumnBytes + kBarrierBytes;

  // The products of a tile of more stages than these hide a reduction whose instructions come from DRAM (40,000
  // cycles).
  static constexpr int kLongSteps = 52;

  // Blocks keep pace in laps of this many stages (about 25,000 cycles).
  static constexpr uint32_t kLapStages = 32;
  static constexpr int64_t kPatience = 65536;  // cycles
  static constexpr uint32_t kMaxLaps = 4096;
  // The counters of the laps must be zeroed first (a memset took 6 us at 512, 4096, 151936; H200, 2026-11-30); only a
  // launch that takes long enough to drift apart, and whose weight tiles are shared by more than four blocks, pays it.
  static constexpr int64_t kPacedStages = 512;  // per block
  static constexpr int64_t kPacedRowTiles = 5;
};
static_assert(TileConfig::kSharedBytes <= kSharedLimit, "shared memory of one block");
// What the block has at entry is all that setmaxnreg can move: a claim beyond it would wait for ever.
inline constexpr int kEntryRegisters = 168;  // 65536 / kThreads in steps of 8
static_assert(TileConfig::kCopyRegisters + 2 * TileConfig::kMultiplyRegisters <= 3 * kEntryRegisters, "registers");

// Up to 64 rows: the ids are the M operand, so that W streams through once; a tile is one leaf.
template <int kTokens_>
struct StreamConfig {
  static constexpr int kTokens = kTokens_;  // n of the MMA
  static constexpr int kIds = 128;
  static constexpr int kStages = kTokens == 8 ? 11 : kTokens == 16 ? 10 : kTokens == 32 ? 9 : 7;
  static constexpr int kTurnTokens = kTokens < 32 ? kTokens : 32;  // that are transposed at a time
  static constexpr int kPitch = kIds + 4;  // words; the four column pairs of a quad fall on different banks
  static constexpr uint32_t kWeightBytes = kIds * kRowBytes;
  static constexpr uint32_t kStageBytes = kWeightBytes + kTokens * kRowBytes;
  static constexpr uint32_t kTurnBytes = kTurnTokens * kPitch * 4;  // per warpgroup
  static constexpr uint32_t kBarrierBytes = 2 * kStages * 8;
  static constexpr uint32_t kSharedBytes = kSwizzleAlignment + kStages * kStageBytes + 2 * kTurnBytes + kBarrierBytes;
  static_assert(kSharedBytes <= kSharedLimit, "shared memory of one block");
};
static_assert(StreamConfig<8>::kIds == kLeaf, "a tile is a leaf");
inline constexpr int kMaxStreamRows = 64;

}  // namespace isobit::linear_logp::sm90
