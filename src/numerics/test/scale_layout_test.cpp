// The scale layouts against a walk over their buffers in the order of the bytes.
#include "numerics/scale_layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace isobit::numerics {
namespace {

constexpr ScaleLayout kLayouts[] = {ScaleLayout::kLinear, ScaleLayout::k128x4, ScaleLayout::k8x4};

// The (row, block) of each byte, written down tile by tile.
std::vector<std::pair<int64_t, int64_t>> walk(ScaleLayout layout, int64_t rows, int64_t blocks) {
  std::vector<std::pair<int64_t, int64_t>> order;
  if (layout == ScaleLayout::kLinear) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t block = 0; block < blocks; ++block) order.emplace_back(row, block);
    }
    return order;
  }
  // A tile of height lines * quarters; the 8x4 tile is one quarter of 8 lines.
  const int64_t lines = layout == ScaleLayout::k128x4 ? 32 : 8;
  const int64_t quarters = layout == ScaleLayout::k128x4 ? 4 : 1;
  for (int64_t row = 0; row < rows; row += lines * quarters) {
    for (int64_t block = 0; block < blocks; block += 4) {
      for (int64_t line = 0; line < lines; ++line) {
        for (int64_t quarter = 0; quarter < quarters; ++quarter) {
          for (int64_t b = 0; b < 4; ++b) order.emplace_back(row + quarter * lines + line, block + b);
        }
      }
    }
  }
  return order;
}

TEST(ScaleLayoutTest, EveryByteBelongsToOneRowAndBlock) {
  for (const ScaleLayout layout : kLayouts) {
    for (const int64_t rows : {0, 1, 7, 8, 9, 31, 32, 33, 127, 128, 129, 255, 256, 300}) {
      for (int64_t blocks = 0; blocks <= 13; ++blocks) {
        const auto order = walk(layout, rows, blocks);
        ASSERT_EQ(scale_buffer_size(layout, rows, blocks), static_cast<int64_t>(order.size())) << rows << " " << blocks;
        for (int64_t at = 0; at < static_cast<int64_t>(order.size()); ++at) {
          const auto [row, block] = order[static_cast<size_t>(at)];
          ASSERT_EQ(scale_offset(layout, row, block, blocks), at) << row << " " << block << " of " << blocks;
        }
      }
    }
  }
}

TEST(ScaleLayoutTest, SizesOfRealShapes) {
  EXPECT_EQ(scale_buffer_size(ScaleLayout::k128x4, 784, 128), 114688);
  EXPECT_EQ(scale_buffer_size(ScaleLayout::k128x4, 880, 128), 114688);
  EXPECT_EQ(scale_buffer_size(ScaleLayout::k128x4, 968, 128), 131072);
  EXPECT_EQ(scale_buffer_size(ScaleLayout::k128x4, 968, 1024), 1048576);
  EXPECT_EQ(scale_buffer_size(ScaleLayout::k128x4, 32768, 128), 4194304);
  EXPECT_EQ(scale_buffer_size(ScaleLayout::k8x4, 9, 5), 16 * 8);
  EXPECT_EQ(scale_buffer_size(ScaleLayout::kLinear, 9, 5), 45);
}

TEST(ScaleLayoutTest, OffsetsBeyond32Bits) {
  constexpr int64_t kRows = int64_t{1} << 30;
  static_assert(scale_offset_128x4(kRows - 1, 1023, 1024) == kRows * 1024 - 1);
  static_assert(scale_offset_8x4(kRows - 1, 1023, 1024) == kRows * 1024 - 1);
  static_assert(scale_offset_linear(kRows - 1, 1023, 1024) == kRows * 1024 - 1);
}

}  // namespace
}  // namespace isobit::numerics
