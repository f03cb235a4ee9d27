// In which order the persistent blocks of the tile kernel visit the tiles, and how they keep pace. Pure functions of
// the shape and of the number of blocks; no result depends on them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/tile_order.h"
#include "ops/linear_logp/sm90/config.h"

namespace isobit::linear_logp::sm90 {

// Row tiles whose hidden states L2 holds (`resident`) go together past all column tiles. Within them, groups of row
// tiles take a band of column tiles one group after the other, so that the band's weights come from DRAM once.
struct BandedOrder {
  int32_t row_tiles;
  int32_t column_tiles;
  int32_t resident;  // row tiles
  int32_t band;      // column tiles

  ISOBIT_HD constexpr int64_t count() const { return int64_t{row_tiles} * column_tiles; }

  // index < count(), below 2^31.
  ISOBIT_HD constexpr device::TileOrder::Tile at(uint32_t index) const {
    if (band == column_tiles) return device::TileOrder{row_tiles, column_tiles, TileConfig::kGroupTiles}.at(index);
    const uint32_t per_part = static_cast<uint32_t>(resident) * static_cast<uint32_t>(column_tiles);
    const uint32_t part = index / per_part;
    const int32_t row = static_cast<int32_t>(part) * resident;
    const int32_t rows = row_tiles - row < resident ? row_tiles - row : resident;
    const uint32_t per_band = static_cast<uint32_t>(rows) * static_cast<uint32_t>(band);
    const uint32_t bands = (index - part * per_part) / per_band;
    const int32_t column = static_cast<int32_t>(bands) * band;
    const int32_t columns = column_tiles - column < band ? column_tiles - column : band;
    const device::TileOrder::Tile tile =
        device::TileOrder{rows, columns, TileConfig::kGroupTiles}.at(index - part * per_part - bands * per_band);
    return {row + tile.row, column + tile.column};
  }
};

// Where hidden states of more than one group of rows stay in L2, bands; else one band of all columns.
constexpr BandedOrder banded_order(int32_t row_tiles, int32_t column_tiles, int64_t width) {
  const int64_t tile_bytes = 2 * width * TileConfig::kRows;
  const auto resident = static_cast<int32_t>(std::min<int64_t>(TileConfig::kResidentBytes / tile_bytes, row_tiles));
  if (resident > TileConfig::kGroupTiles) return {row_tiles, column_tiles, resident, TileConfig::kBandTiles};
  return {row_tiles, column_tiles, TileConfig::kGroupTiles, column_tiles};
}

// The laps in which blocks keep pace: a block's stages in pieces of TileConfig::kLapStages. A block announces the start
// of every lap but its last one; nobody has to wait for the start of a lap after which a block has no other. Block b
// has the tiles b, b + blocks, b + 2 blocks, ...
struct Laps {
  uint32_t tiles;
  uint32_t blocks;  // at most `tiles`
  uint32_t steps;   // stages per tile

  ISOBIT_HD constexpr uint32_t of_block(uint32_t block) const {
    const uint32_t mine = (tiles - block + blocks - 1) / blocks;
    return (mine * steps + TileConfig::kLapStages - 1) / TileConfig::kLapStages;
  }

  // Blocks that announce the start of this lap: all if all have stages beyond it, else those that have one tile more.
  // A block with another lap waits for so many.
  ISOBIT_HD constexpr uint32_t announcements(uint32_t lap) const {
    return (lap + 1) * TileConfig::kLapStages < tiles / blocks * steps ? blocks : tiles % blocks;
  }
};

}  // namespace isobit::linear_logp::sm90
