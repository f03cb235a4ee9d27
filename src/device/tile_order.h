// The order in which persistent blocks and plain grids visit the tiles of a matrix: row tiles in groups, the row tile
// of a group fastest, then the column tile, then the group. Blocks that run at the same time then share columns, and a
// group's rows stay in L2 while all columns pass. A pure function; no result depends on it.
#pragma once

#include <cstdint>

#include "numerics/host_device.h"

namespace isobit::device {

struct TileOrder {
  int32_t row_tiles;
  int32_t column_tiles;
  int32_t group;  // row tiles

  struct Tile {
    int32_t row, column;
  };

  // Below 2^31: who plans a call checks it.
  ISOBIT_HD constexpr int64_t count() const { return int64_t{row_tiles} * column_tiles; }

  // index < count().
  ISOBIT_HD constexpr Tile at(uint32_t index) const {
    const uint32_t per_group = static_cast<uint32_t>(group) * static_cast<uint32_t>(column_tiles);
    const uint32_t number = index / per_group;
    const int32_t first = static_cast<int32_t>(number) * group;
    const auto rows = static_cast<uint32_t>(row_tiles - first < group ? row_tiles - first : group);
    const uint32_t rest = index - number * per_group;
    return {first + static_cast<int32_t>(rest % rows), static_cast<int32_t>(rest / rows)};
  }
};

}  // namespace isobit::device
