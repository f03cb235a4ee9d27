// A tile product on tensor memory, written by hand for sm_100: 128 rows, 32 columns, four k steps, twice, the second
// time added to the first result. One thread issues, four warps read the accumulator, one warp owns the allocation.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ptx/runtime/emulation.h"

namespace isobit::ptx::test {

enum class TileKind {
  kNvfp4,
  kBf16,
  kBf16ColumnsOfB,  // B lies N-major, in the 64-byte swizzle
};

constexpr int kTileM = 128, kTileN = 32, kTileTurns = 2;

struct TileResult {
  std::vector<float> out;  // turn, row, column
  Report report;
  std::string error;  // of the parser
};

std::string tile_text(TileKind kind);
// The tile's bytes as they lie in shared memory: A and B in the 128-byte swizzle, then the scale factors.
std::vector<uint8_t> tile_input(TileKind kind);
std::vector<float> tile_expected(TileKind kind);
TileResult run_tile(const std::string& text, TileKind kind, const ScheduleCase& schedule);

}  // namespace isobit::ptx::test
