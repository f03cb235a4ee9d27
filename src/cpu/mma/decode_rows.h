// Finds the parts of the memory that decode_rows writes.
#pragma once

#include "cpu/mma/layout.h"

namespace isobit::cpu::mma {

inline int64_t group_count(int64_t k) { return (k + kGroup - 1) / kGroup; }
inline int64_t padded_row_count(int64_t rows) { return (rows + kRowPair - 1) / kRowPair * kRowPair; }

inline DecodedRows decoded_rows_parts(void* decoded, int64_t rows, int64_t k) {
  const int64_t count = padded_row_count(rows) * group_count(k);
  char* const begin = align_up(decoded);
  DecodedRows parts;
  parts.header = reinterpret_cast<RowsHeader*>(begin);
  parts.groups = reinterpret_cast<RowGroup*>(begin + sizeof(RowsHeader));
  parts.raw = reinterpret_cast<uint16_t(*)[kGroup]>(parts.groups + count);
  parts.bases = reinterpret_cast<int32_t*>(parts.raw + count);
  return parts;
}

}  // namespace isobit::cpu::mma
