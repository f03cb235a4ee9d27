// The tile kernel's schedule: every tile once, and blocks that keep pace wait for the announcements that come, no more:
// a block that waited for one too many would stand still until its patience ends.
#include <gtest/gtest.h>

#include <vector>

#include "ops/linear_logp/sm90/schedule.h"

namespace isobit::linear_logp::sm90 {
namespace {

TEST(LinearLogpLaps, EveryAwaitedBlockAnnounces) {
  for (const uint32_t blocks : {1u, 2u, 3u, 132u}) {
    for (const uint32_t steps : {1u, 5u, 31u, 32u, 33u, 36u, 64u, 80u}) {
      for (uint32_t tiles = blocks; tiles < 4 * blocks + 3; ++tiles) {
        const Laps laps{tiles, blocks, steps};
        for (uint32_t lap = 0; lap + 1 < laps.of_block(0); ++lap) {
          uint32_t announcing = 0;
          for (uint32_t block = 0; block < blocks; ++block) announcing += lap + 1 < laps.of_block(block) ? 1 : 0;
          ASSERT_EQ(laps.announcements(lap), announcing)
              << tiles << " tiles of " << steps << " steps, " << blocks << " blocks, lap " << lap;
        }
      }
    }
  }
}

// 4096, 2048, 32768 on 132 multiprocessors: 41 rounds for all, a 42nd for 60.
TEST(LinearLogpLaps, LastRoundOfSomeBlocks) {
  const Laps laps{5472, 132, 32};
  EXPECT_EQ(laps.of_block(59), 42u);
  EXPECT_EQ(laps.of_block(60), 41u);
  EXPECT_EQ(laps.announcements(39), 132u);
  EXPECT_EQ(laps.announcements(40), 60u);
}

void expect_each_tile_once(const BandedOrder& order) {
  std::vector<int> visits(static_cast<size_t>(order.count()));
  for (uint32_t index = 0; index < order.count(); ++index) {
    const auto tile = order.at(index);
    ASSERT_TRUE(tile.row >= 0 && tile.row < order.row_tiles && tile.column >= 0 && tile.column < order.column_tiles)
        << index << ": " << tile.row << ", " << tile.column;
    ++visits[static_cast<size_t>(tile.row) * static_cast<size_t>(order.column_tiles) +
             static_cast<size_t>(tile.column)];
  }
  for (const int count : visits) ASSERT_EQ(count, 1);
}

TEST(LinearLogpSchedule, EveryTileOnce) {
  for (const int32_t rows : {1, 5, 16, 17, 32, 33, 63, 64, 81}) {
    for (const int32_t columns : {1, 7, 8, 9, 171}) {
      for (const int64_t width : {8, 1152, 2048, 2304, 4096, 16384}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << columns << " tiles, width " << width);
        expect_each_tile_once(banded_order(rows, columns, width));
      }
    }
  }
}

// Hidden states of 4,096 rows of 2,048 elements stay in L2, those of 4,096 do not.
TEST(LinearLogpSchedule, BandsWhereRowsStayInL2) {
  const BandedOrder narrow = banded_order(32, 683, 2048);
  EXPECT_EQ(narrow.resident, 32);
  EXPECT_EQ(narrow.band, TileConfig::kBandTiles);
  EXPECT_EQ(narrow.at(16 * TileConfig::kBandTiles).row, 16);
  EXPECT_EQ(narrow.at(16 * TileConfig::kBandTiles).column, 0);
  const BandedOrder wide = banded_order(32, 792, 4096);
  EXPECT_EQ(wide.resident, TileConfig::kGroupTiles);
  EXPECT_EQ(wide.band, 792);
}

}  // namespace
}  // namespace isobit::linear_logp::sm90
