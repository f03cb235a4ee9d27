// Decoding of column groups with AVX-512.
#pragma once

#include "cpu/mma/layout.h"

namespace isobit::cpu::mma::avx512 {

bool decode_tile(const ColumnGroup& columns, Format format, ColumnTile* tile);

}  // namespace isobit::cpu::mma::avx512
