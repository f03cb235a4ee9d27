// What the parts of the engine hand to each other: the decoded rows, a decoded group of 16 x 64 columns, the chains.
//
// The arithmetic (numerics/hopper_mma.h) in fp64. For one output and one group of 16 products let E be the exponent of
// rule 1, u = 2^(E-25) and M = 1.5 * 2^52 * u. The sum starts at M + (c truncated to a multiple of u) and takes each
// product by an fma that rounds toward zero. It stays within 2^32 u of M, where doubles are the multiples of u, so each
// product is rounded down to a multiple of u and added exactly. Truncation wants negative products rounded up: every
// negative product that is not a multiple of u owes one u, and the number of those is added as an integer to the
// sum's bits. A product is a multiple of u when its lowest set bit is: that bit's exponent is the sum of the
// factors', so the count needs bytes only, and so does E. Subtracting M and clearing 29 bits gives the fp32 result.
//
// Exponents are bytes relative to the largest of the row's and of the tile's group. A lane leaves the fast path for
// one step, by the scalar model, when E is too far below that bound to tell, below -124 (u must be a multiple of the
// smallest fp32) or above 100 (no overflow, NaN or infinity can then be near), or when an operand is NaN or infinite.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/mma/multiply_tile.h"

namespace isobit::cpu::mma {

constexpr int kGroup = 16;  // products of one step

// 16 elements of one row. The bytes stand four times in their word, ready to be broadcast.
struct alignas(64) RowGroup {
  double value[kGroup];
  int32_t exponent[kGroup];    // relative to the group's base, at least -64; a zero has -64
  int32_t lowest[kGroup];      // exponent of the lowest set bit + mantissa bits, relative and limited likewise
  int32_t lost_table[kGroup];  // byte offset of the table in ColumnTile::lowest that this element's sign asks for
};

// Bases of a row's group that are no exponent. Their sums with a tile's base stay apart from every exponent.
constexpr int32_t kZeroBase = -1000;    // all elements are zero
constexpr int32_t kSpecialBase = 4000;  // has a NaN or an infinity

struct alignas(64) RowsHeader {
  int64_t rows;
  int64_t padded_rows;  // a multiple of kRowPair
  int64_t k;
  Format format;
};

constexpr int64_t kRowPair = 2;

// The parts of the memory behind decode_rows' pointer. Group g of row r is at [g * padded_rows + r].
struct DecodedRows {
  RowsHeader* header;
  RowGroup* groups;
  int32_t* bases;
  uint16_t (*raw)[kGroup];
};

// 16 elements of each of 64 columns. Side by side, because at a stride of a multiple of 4 KB all columns would share
// one set of the first-level cache.
using ColumnGroup = uint16_t[kTileColumns][kGroup];

// The same, decoded and element-major.
struct alignas(64) ColumnTile {
  double value[kGroup][kTileColumns];  // columns in the kernel's order
  int8_t exponent[kGroup][kTileColumns];
  int8_t lowest[3][kGroup][kTileColumns];  // 127 where the column's element cannot make a negative product:
                                           // [0] for positive row elements, [1] for negative ones, [2] for zeros
  int8_t exponent_cap[kTileColumns];       // -128 for a column of zeros, else 127
  int32_t base;                            // largest exponent, or kZeroBase
  uint64_t zero_columns;
  uint64_t special_columns;  // columns with a NaN or an infinity (zeroed in the tile)
};

// The 64 chains of one row.
struct alignas(64) RowState {
  double value[kTileColumns];          // every value is an fp32; columns in the kernel's order
  int8_t exponent[kTileColumns];       // of the values, -128 at zero and below, 127 for NaN and infinity
  int8_t step_exponent[kTileColumns];  // E of the step at hand
  int8_t lost[kTileColumns];           // the step's negative products that lose bits
  uint64_t flagged;                    // columns of the step that the scalar model computed
};

struct TileScratch {
  ColumnTile tile;
  RowGroup idle_rows[kRowPair];        // zeros: what a pipeline works on after the last rows
  alignas(64) ColumnGroup columns[2];  // two groups as they are, with +0 for what is missing
  alignas(64) ColumnGroup finite;      // zeros in place of NaN and infinity
};

// One step of all rows against the tile.
struct Step {
  TileScratch* scratch;
  const RowGroup* rows;
  const uint16_t (*raw_rows)[kGroup];
  int64_t row_count;               // a multiple of kRowPair
  RowState* states;                // with kRowPair idle ones after the last, and so base and low
  float (*patches)[kTileColumns];  // results of flagged columns
  int8_t* base;                    // per row: exponent that the bytes are relative to
  int8_t* low;                     // per row: smallest E of the fast path, or kAllFlagged
  const uint16_t (*raw_columns)[kGroup];
  uint64_t valid_columns;
  Format format;
  int32_t lost_threshold;
};

constexpr int8_t kHighestExponent = 100;
constexpr int8_t kLowestExponent = -124;
constexpr int8_t kAllFlagged = 127;

constexpr int mantissa_bits(Format format) { return format == Format::kBf16 ? 7 : 10; }

// A product is a multiple of u when lowest(a) + lowest(b) >= E - kKept, in the bytes of RowGroup and ColumnTile.
constexpr int lost_threshold(Format format) { return 25 - 2 * mantissa_bits(format); }

// How far E may lie below the base: clipping at -64 must touch neither E nor the comparison of lowest bits. bf16:
// a clipped lowest bit is at most -64 + 7, so E - 11 > -57 - 0 keeps the order; fp16 spans 29 exponents and is never
// clipped, but a zero counts as -64.
constexpr int exponent_reach(Format format) { return format == Format::kBf16 ? 44 : 58; }

// The kernels of one SIMD target.
struct Kernel {
  // False, with the tile unspecified, when an element is NaN or infinite. The columns are 64-byte aligned.
  bool (*decode_tile)(const ColumnGroup& columns, Format format, ColumnTile* tile);
  void (*step)(const Step& step);
  const uint8_t* position;  // where the kernel keeps column j
};

const Kernel* avx512_kernel();    // null where it is not built
const Kernel* portable_kernel();  // AVX2 or NEON, what the library is compiled for

inline char* align_up(void* pointer) {
  const uintptr_t past = reinterpret_cast<uintptr_t>(pointer) % 64;
  return static_cast<char*>(pointer) + (past == 0 ? 0 : 64 - past);
}

}  // namespace isobit::cpu::mma
