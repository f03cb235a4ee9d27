// Sizes of the mma.sync tile of NVFP4 products, and the operand that it reads; for host and device.
#pragma once

#include <cstdint>

#include "numerics/scale_layout.h"

namespace isobit::device {

// A packed matrix [rows, 16 blocks] in global memory.
struct Nvfp4Operand {
  const uint8_t* codes;
  int64_t row_bytes;
  const uint8_t* scales;
  int64_t rows;
  int32_t blocks;
  numerics::ScaleLayout layout;
  bool aligned;  // every row starts at a multiple of 8 bytes
};

struct Nvfp4Tile {
  static constexpr int kRows = 128;
  static constexpr int kColumns = 128;
  static constexpr int kBlocks = 4;  // of 16 elements, a stage
  static constexpr int kThreads = 256;
  static constexpr int kRowBytes = kBlocks * 32;
  static constexpr int kMatrixBytes = kRows * kRowBytes;
  static constexpr int kStageBytes = 2 * kMatrixBytes;
  static constexpr int kSharedBytes = 2 * kStageBytes;
  static constexpr int kWarpRows = 64;
  static constexpr int kWarpColumns = 32;
  static constexpr int kWarpsAcross = kColumns / kWarpColumns;

  // Sums of a thread: [16 rows][8 columns][of the fragment], times 2^-16.
  using Sums = float[4][4][4];
};

}  // namespace isobit::device
