// The plan of a CUDA call, without a GPU: every column of every row is covered
// once, and every grid is legal.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ops/geglu/cuda/config.h"

namespace isobit::geglu::cuda {
namespace {

Params params_of(isobit_dtype dtype, int64_t rows, int64_t columns, int64_t stride, uintptr_t address) {
  Params p = {};
  p.rows = rows;
  p.columns = columns;
  p.dtype = dtype;
  p.input_step = p.gradient_step = 1;
  for (Matrix* m : {&p.gate, &p.up, &p.out}) *m = {reinterpret_cast<void*>(address), stride};
  return p;
}

// Columns that the tile kernel's vectors touch in a row, with the kernel's
// arithmetic.
std::vector<int> coverage(const Work& work, isobit_dtype dtype, uint32_t row, int32_t tile) {
  std::vector<int> hits(static_cast<size_t>(work.columns));
  const Dim3 grid = tile_grid(work, dtype, tile);
  const auto line = static_cast<int32_t>(line_columns(dtype));
  const int32_t start = -static_cast<int32_t>((work.lead + row * work.lead_step) % static_cast<uint32_t>(line));
  for (int64_t x = 0; x < int64_t{grid.x} * tile; ++x) {
    const int64_t column = start + x;
    if (column >= 0 && column < work.columns) ++hits[static_cast<size_t>(column)];
  }
  return hits;
}

TEST(GegluPlan, TilesCoverEveryColumnOnce) {
  for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP32}) {
    for (const int64_t columns : {1, 63, 64, 65, 1023, 1024, 1025, 4097}) {
      for (const int64_t stride : {columns, columns + 1, columns + 64, int64_t{8192}}) {
        const uintptr_t size = dtype == ISOBIT_FP32 ? 4 : 2;
        for (const uintptr_t offset : {0, 1, 8, 63}) {
          const Params p = params_of(dtype, 70, columns, stride, 0x10000 + offset * size);
          const Work work = work_at(p, 0, 0);
          for (const uint32_t row : {0u, 1u, 2u, 63u, 69u}) {
            const std::vector<int> hits = coverage(work, dtype, row, 1024);
            EXPECT_EQ(hits, std::vector<int>(hits.size(), 1)) << columns << " " << stride << " " << row;
          }
        }
      }
    }
  }
}

TEST(GegluPlan, TilesStartOnLines) {
  const Params p = params_of(ISOBIT_BF16, 8, 100, 101, 0x10002);
  const Work work = work_at(p, 0, 0);
  for (uint32_t row = 0; row < 8; ++row) {
    const uint64_t address = 0x10002 + 202 * row;
    EXPECT_EQ((work.lead + row * work.lead_step) % 64, address % 128 / 2);
  }
}

TEST(GegluPlan, GridsAreLegal) {
  struct Case {
    int64_t rows, columns;
  };
  for (const Case& c : {Case{65536, 64}, Case{262141, 8}, Case{int64_t{1} << 31, 1}, Case{1, int64_t{1} << 33},
                        Case{149911, 14336}, Case{1, 1}}) {
    const Params p = params_of(ISOBIT_BF16, c.rows, c.columns, c.columns + 1, 0x10000);
    int64_t rows = 0;
    for (int64_t row = 0; row < p.rows; row += rows) {
      int64_t columns = 0;
      for (int64_t column = 0; column < p.columns; column += kColumnsPerLaunch) {
        const Work work = work_at(p, row, column);
        const Dim3 grid = tile_grid(work, p.dtype, 1024);
        EXPECT_LE(grid.x, 2147483647u);
        EXPECT_LE(grid.y, 65535u);
        EXPECT_LE(grid.z, 65535u);
        EXPECT_GE(int64_t{grid.y} * grid.z, int64_t{work.rows});
        EXPECT_EQ(reinterpret_cast<uintptr_t>(work.out.data),
                  0x10000 + static_cast<uintptr_t>(row * (c.columns + 1) + column) * 2);
        rows = work.rows;
        columns += work.columns;
      }
      EXPECT_EQ(columns, c.columns);
    }
  }
}

TEST(GegluPlan, RowStridesThatDoNotFitGoRowByRow) {
  const Params p = params_of(ISOBIT_FP32, 3, 16, int64_t{1} << 31, 0x10000);
  EXPECT_EQ(work_at(p, 0, 0).rows, 1u);
  EXPECT_EQ(work_at(p, 2, 0).out.data - work_at(p, 1, 0).out.data, int64_t{1} << 33);
}

TEST(GegluPlan, VectorStarts) {
  Params p = params_of(ISOBIT_BF16, 3, 24, 24, 0x10000);
  EXPECT_EQ(work_at(p, 0, 0).vector_starts, 17u);
  p.columns = 7;
  EXPECT_EQ(work_at(p, 0, 0).vector_starts, 0u);
}

TEST(GegluPlan, TheWayFollowsFromAlignment) {
  Params p = params_of(ISOBIT_BF16, 3, 24, 24, 0x10000);
  EXPECT_EQ(work_at(p, 0, 0).way, Way::kVectors);
  p.rows = 1;
  EXPECT_EQ(work_at(p, 0, 0).way, Way::kOneRow);
  p.round_gelu = true;
  EXPECT_EQ(work_at(p, 0, 0).way, Way::kWords);
  // Odd widths: aligned alike as long as all rows have one stride.
  p = params_of(ISOBIT_BF16, 3, 25, 25, 0x10002);
  EXPECT_EQ(work_at(p, 0, 0).way, Way::kVectors);
  p.up.data = reinterpret_cast<void*>(0x10004);
  EXPECT_EQ(work_at(p, 0, 0).way, Way::kWords);
  p.up = {p.gate.data, 33};
  EXPECT_EQ(work_at(p, 0, 0).way, Way::kVectors);
  p.up.row_stride = 26;
  EXPECT_EQ(work_at(p, 0, 0).way, Way::kWords);
  EXPECT_EQ(work_at(p, 0, 0).vector_starts, 0u);
}

// The halves of [3, 2 x 25] and a contiguous output.
TEST(GegluPlan, OperandsInHalvesOfWords) {
  Params p = params_of(ISOBIT_BF16, 3, 25, 50, 0x10000);
  p.up.data = reinterpret_cast<void*>(0x10032);
  p.out.row_stride = 25;
  const Work forward = work_at(p, 0, 0);
  EXPECT_EQ(forward.halves, 0b010u);       // up, seen from out
  EXPECT_EQ(forward.halves_step, 0b011u);  // gate and up, because rows of out lie on odd elements in turn
  p.backward = true;
  p.d_gate = p.gate;
  p.d_up = p.up;
  const Work backward = work_at(p, 0, 0);
  EXPECT_EQ(backward.halves, 0b10010u);  // up and d_up, seen from d_gate
  EXPECT_EQ(backward.halves_step, 0b00100u);
}

TEST(GegluPlan, InterleavedPairsKnowTheirOrder) {
  Params p = params_of(ISOBIT_BF16, 2, 16, 32, 0x10000);
  p.input_step = 2;
  p.out.row_stride = 16;
  p.gate.data = reinterpret_cast<void*>(0x10002);
  EXPECT_TRUE(work_at(p, 0, 0).inputs.swapped);
  EXPECT_EQ(work_at(p, 0, 0).way, Way::kCouples);
  EXPECT_EQ(work_at(p, 0, 0).vector_starts, 9u);
  p.gate.data = reinterpret_cast<void*>(0xFFFE);
  EXPECT_FALSE(work_at(p, 0, 0).inputs.swapped);
  EXPECT_EQ(work_at(p, 0, 0).vector_starts, 0u);
  // An odd width leaves couples on vectors wherever the output is.
  p = params_of(ISOBIT_BF16, 2, 17, 34, 0x10000);
  p.input_step = 2;
  p.up.data = reinterpret_cast<void*>(0x10002);
  p.out.row_stride = 17;
  EXPECT_EQ(work_at(p, 0, 0).vector_starts, 10u);
}

TEST(GegluPlan, WarpsPerRow) {
  EXPECT_EQ(warps_per_row(1, 256), 1u);
  EXPECT_EQ(warps_per_row(256, 256), 1u);
  EXPECT_EQ(warps_per_row(257, 256), 2u);
  EXPECT_EQ(warps_per_row(1024, 256), 4u);
  EXPECT_EQ(warps_per_row(1 << 20, 256), 8u);
}

}  // namespace
}  // namespace isobit::geglu::cuda
