// Sizes, descriptors and plan of the block-scaled NVFP4 tile of SM100, SM103 and SM110; for host and device.
#pragma once

#include <cstdint>

#include "core/runtime.h"
#include "device/tile_order.h"
#include "numerics/host_device.h"

namespace isobit::device {

struct ScaledTile {
  static constexpr int kRows = 128;     // of x: m of the instruction
  static constexpr int kColumns = 256;  // rows of the weight: n
  static constexpr int kDepth = 256;    // elements of K a stage: one row of the 128-byte swizzle
  static constexpr int kStepDepth = 64;
  static constexpr int kSteps = kDepth / kStepDepth;
  static constexpr int kStages = 4;

  static constexpr int kFinishWarps = 8;  // warp w: lanes 32 (w % 4) of the sums, half w / 4 of the columns
  static constexpr int kCopyWarp = kFinishWarps;
  static constexpr int kMultiplyWarp = kFinishWarps + 1;
  static constexpr int kThreads = 32 * (kFinishWarps + 2);
  static constexpr int kThreadColumns = 128;

  static constexpr uint32_t kRowBytes = kDepth / 2;
  static constexpr uint32_t kScaleTileBytes = 512;  // 128 rows, 4 blocks of 16: the scales of a step
  static constexpr int kScaleRows = 128;
  static constexpr uint32_t kXBytes = kRows * kRowBytes;
  static constexpr uint32_t kWeightBytes = kColumns * kRowBytes;
  static constexpr uint32_t kXScaleBytes = kSteps * kScaleTileBytes;
  static constexpr uint32_t kWeightScaleBytes = 2 * kXScaleBytes;

  // Places in a stage.
  static constexpr uint32_t kWeightAt = kXBytes;
  static constexpr uint32_t kXScalesAt = kWeightAt + kWeightBytes;
  static constexpr uint32_t kWeightScalesAt = kXScalesAt + kXScaleBytes;
  static constexpr uint32_t kStageBytes = kWeightScalesAt + kWeightScaleBytes;
  static constexpr uint32_t kAlignment = 1024;                            // of the swizzle
  static constexpr uint32_t kBarrierBytes = 2 * kStages * 8 + 2 * 8 + 8;  // ring, sums, address of tensor memory
  static constexpr uint32_t kSharedBytes = kAlignment + kStages * kStageBytes + kBarrierBytes;

  // Columns of tensor memory: the sums, then every stage's scales. Scales have columns of their own in every stage, so
  // that a stage's barrier also says when they may be overwritten: no order between a multiplication and a later copy
  // is relied on, which the ISA does not promise.
  static constexpr uint32_t kScalesColumn = kColumns;
  static constexpr uint32_t kXScaleColumns = 4;  // a step: 128 rows as 32 lanes of 4
  static constexpr uint32_t kWeightScaleColumns = 8;
  static constexpr uint32_t kStageColumns = kSteps * (kXScaleColumns + kWeightScaleColumns);
  static constexpr uint32_t kTensorColumns = 512;
};
static_assert(ScaledTile::kSharedBytes <= 227 * 1024, "shared memory of one block");
static_assert(ScaledTile::kStageBytes % ScaledTile::kAlignment == 0, "every stage starts at a swizzle atom");
static_assert(ScaledTile::kScalesColumn + ScaledTile::kStages * ScaledTile::kStageColumns <= ScaledTile::kTensorColumns,
              "tensor memory of one block");

// Descriptors in shared memory (PTX ISA 9.7.16.4.1): address / 16, bits 32 to 45 the distance of groups of eight rows
// / 16, bit 46 the version, from bit 61 the swizzle. K-major rows of 128 bytes in the 128-byte swizzle:
ISOBIT_HD constexpr uint64_t scaled_operand_descriptor(uint32_t shared) {
  return uint64_t{2} << 61 | uint64_t{1} << 46 | uint64_t{1024 >> 4} << 32 | ((shared & 0x3FFFF) >> 4);
}
inline constexpr uint64_t kScaledStep = (ScaledTile::kStepDepth / 2) >> 4;  // one step further along K

// 32 lines of 16 bytes, not swizzled: a tile of scales.
ISOBIT_HD constexpr uint64_t scale_tile_descriptor(uint32_t shared) {
  return uint64_t{1} << 46 | uint64_t{128 >> 4} << 32 | ((shared & 0x3FFFF) >> 4);
}

// Instruction descriptor of kind::mxf4nvf4 (PTX ISA 9.7.16.4.2): E2M1 for both operands, E4M3 scales, K-major, K = 64.
inline constexpr uint32_t kScaledInstruction =
    1u << 7 | 1u << 10 | uint32_t{ScaledTile::kColumns / 8} << 17 | uint32_t{ScaledTile::kRows / 128} << 27;

// The copy engine's view of both operands.
struct ScaledOperands {
  TensorMap x, weight;                // bytes of codes, boxes of 128 x rows
  TensorMap x_scales, weight_scales;  // words: 128 of a tile of scales, tiles along K, tiles along the rows
};

// What a launch does. A column of the order is kBlocks neighbouring tiles, one for each block of a cluster.
struct ScaledPlan {
  TileOrder order;
  int32_t steps;  // of 64 along K
};

}  // namespace isobit::device
