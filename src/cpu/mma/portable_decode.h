// Decoding of column groups with Highway: AVX2 or NEON, what the library is compiled for.
#pragma once

#include "cpu/mma/layout.h"

namespace isobit::cpu::mma::portable {

// Within every 2 * lanes columns the doubles of the even columns stand before those of the odd ones: then the high
// words of two vectors of doubles are the exponent fields of neighbouring columns.
constexpr int position(int column, int lanes) {
  const int group = column / (2 * lanes) * (2 * lanes);
  const int within = column - group;
  return group + within % 2 * lanes + within / 2;
}

bool decode_tile(const ColumnGroup& columns, Format format, ColumnTile* tile);

}  // namespace isobit::cpu::mma::portable
