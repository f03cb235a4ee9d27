#include "cpu/mma/multiply_tile.h"

#include <algorithm>
#include <cstring>

#include "cpu/float_environment.h"
#include "cpu/mma/decode_rows.h"
#include "cpu/mma/scalar_model.h"
#include "cpu/simd_target.h"

namespace isobit::cpu {
namespace mma {
namespace {

// The parts of multiply_tile's scratch.
struct Scratch {
  TileScratch* tile;
  RowState* states;
  float (*patches)[kTileColumns];
  int8_t* base;
  int8_t* low;
};

Scratch scratch_parts(void* scratch, int64_t rows) {
  Scratch parts;
  parts.tile = reinterpret_cast<TileScratch*>(align_up(scratch));
  parts.states = reinterpret_cast<RowState*>(parts.tile + 1);
  parts.patches = reinterpret_cast<float(*)[kTileColumns]>(parts.states + rows + kRowPair);
  parts.base = reinterpret_cast<int8_t*>(parts.patches + rows);
  parts.low = parts.base + rows + kRowPair;
  return parts;
}

const Kernel* active_kernel() {
  switch (best_simd_target()) {
    case SimdTarget::kAvx512:
      return avx512_kernel();
    case SimdTarget::kAvx2:
    case SimdTarget::kNeon:
      return portable_kernel();
    case SimdTarget::kScalar:
      break;
  }
  return nullptr;
}

// Copies groups g and g + 1 (one cache line of every column) into the scratch.
void gather_columns(const Matrix16& columns, int64_t first_column, int column_count, int64_t g, TileScratch* scratch) {
  const uint16_t* const data = columns.data + first_column * columns.row_stride + g * kGroup;
  const int64_t width = std::min<int64_t>(2 * kGroup, columns.k - g * kGroup);
  if (width == 2 * kGroup && column_count == kTileColumns) {
    for (int j = 0; j < kTileColumns; ++j) {
      const uint16_t* const column = data + j * columns.row_stride;
      __builtin_prefetch(column + 4 * kGroup, 0, 2);  // the hardware follows few of the 64 streams
      std::memcpy(scratch->columns[0][j], column, sizeof scratch->columns[0][j]);
      std::memcpy(scratch->columns[1][j], column + kGroup, sizeof scratch->columns[1][j]);
    }
    return;
  }
  const int64_t first_width = std::min<int64_t>(kGroup, width);
  std::memset(scratch->columns, 0, sizeof scratch->columns);
  for (int j = 0; j < column_count; ++j) {
    const uint16_t* const column = data + j * columns.row_stride;
    std::memcpy(scratch->columns[0][j], column, static_cast<size_t>(first_width) * sizeof(uint16_t));
    std::memcpy(scratch->columns[1][j], column + first_width,
                static_cast<size_t>(width - first_width) * sizeof(uint16_t));
  }
}

// Decodes a group that has NaN or infinities: zeros in their place, their columns noted.
void decode_specials(const Kernel& kernel, const ColumnGroup& columns, Format format, TileScratch* scratch) {
  const int infinity = format == Format::kBf16 ? 0x7F80 : 0x7C00;
  for (int j = 0; j < kTileColumns; ++j) {
    for (int i = 0; i < kGroup; ++i) {
      const bool special = (columns[j][i] & 0x7FFF) >= infinity;
      scratch->finite[j][i] = special ? uint16_t{0} : columns[j][i];
      scratch->tile.special_columns |= static_cast<uint64_t>(special) << j;
    }
  }
  kernel.decode_tile(scratch->finite, format, &scratch->tile);
}

// Makes `step` see group g of the columns.
void load_tile(const Kernel& kernel, const Matrix16& columns, int64_t first_column, int column_count, int64_t g,
               Step* step) {
  TileScratch* const scratch = step->scratch;
  if (g % 2 == 0) gather_columns(columns, first_column, column_count, g, scratch);
  const ColumnGroup& group = scratch->columns[g % 2];
  step->raw_columns = group;
  scratch->tile.special_columns = 0;
  if (!kernel.decode_tile(group, columns.format, &scratch->tile)) {
    decode_specials(kernel, group, columns.format, scratch);
  }
}

// The range of exponents in which each row's bytes can be trusted for this step.
void set_row_limits(const int32_t* row_bases, const Step& step) {
  const int32_t tile_base = step.scratch->tile.base;
  const int32_t reach = exponent_reach(step.format);
  constexpr int32_t kLargestBase = 116;  // base + threshold must be a byte
  for (int64_t r = 0; r < step.row_count; ++r) {
    const int32_t base = row_bases[r] + tile_base;
    const bool zero = base < kZeroBase / 2;  // no product: the chain passes through, whatever its exponent
    const bool beyond = base < -128 || base > kLargestBase;
    step.base[r] = static_cast<int8_t>(beyond ? -128 : base);
    step.low[r] = static_cast<int8_t>(zero     ? -128
                                      : beyond ? kAllFlagged
                                               : std::max<int32_t>(base - reach, kLowestExponent));
  }
}

void start_chains(const Step& step, int64_t row_count, int column_count, int64_t ldc, const float* c_init,
                  const uint8_t* position) {
  for (int64_t r = 0; r < step.row_count + kRowPair; ++r) {
    RowState& state = step.states[r];
    std::memset(state.value, 0, sizeof state.value);
    std::memset(state.exponent, -128, sizeof state.exponent);
    if (c_init == nullptr || r >= row_count) continue;
    for (int j = 0; j < column_count; ++j) {
      state.value[position[j]] = c_init[r * ldc + j];
      state.exponent[j] = exponent_byte(state.value[position[j]]);
    }
  }
}

void multiply_with(const Kernel& kernel, const DecodedRows& rows, int64_t row_count, const Matrix16& columns,
                   int64_t first_column, int column_count, float* c, int64_t ldc, void* scratch, const float* c_init) {
  Step step;
  step.row_count = padded_row_count(row_count);
  const Scratch parts = scratch_parts(scratch, step.row_count);
  std::memset(parts.tile->idle_rows, 0, sizeof parts.tile->idle_rows);
  std::memset(parts.tile->tile.lowest[2], 127, sizeof parts.tile->tile.lowest[2]);
  step.scratch = parts.tile;
  step.states = parts.states;
  step.patches = parts.patches;
  step.base = parts.base;
  step.low = parts.low;
  std::memset(step.base + step.row_count, -128, kRowPair);
  std::memset(step.low + step.row_count, -128, kRowPair);
  step.valid_columns = column_count == kTileColumns ? ~uint64_t{0} : (uint64_t{1} << column_count) - 1;
  step.format = columns.format;
  step.lost_threshold = lost_threshold(columns.format);
  start_chains(step, row_count, column_count, ldc, c_init, kernel.position);
  for (int64_t g = 0; g < group_count(columns.k); ++g) {
    load_tile(kernel, columns, first_column, column_count, g, &step);
    step.rows = rows.groups + g * rows.header->padded_rows;
    step.raw_rows = rows.raw + g * rows.header->padded_rows;
    set_row_limits(rows.bases + g * rows.header->padded_rows, step);
    kernel.step(step);
  }
  for (int64_t r = 0; r < row_count; ++r) {
    for (int j = 0; j < column_count; ++j) {
      c[r * ldc + j] = static_cast<float>(step.states[r].value[kernel.position[j]]);
    }
  }
}

}  // namespace
}  // namespace mma

size_t tile_scratch_bytes(int64_t rows) {
  constexpr size_t kPerRow = sizeof(mma::RowState) + kTileColumns * sizeof(float) + 2;
  const size_t row_count = static_cast<size_t>(mma::padded_row_count(rows) + mma::kRowPair);
  return 64 + sizeof(mma::TileScratch) + row_count * kPerRow;
}

void multiply_tile(const void* decoded_rows, int64_t row_count, const Matrix16& columns, int64_t first_column,
                   int column_count, float* c, int64_t ldc, void* scratch, const float* c_init) {
  const FloatEnvironment environment(Rounding::kNearest);
  const auto* const header = reinterpret_cast<const mma::RowsHeader*>(mma::align_up(const_cast<void*>(decoded_rows)));
  const mma::DecodedRows rows = mma::decoded_rows_parts(const_cast<void*>(decoded_rows), header->rows, header->k);
  const mma::Kernel* const kernel = mma::active_kernel();
  if (kernel == nullptr) {
    mma::multiply_tile_scalar(rows, row_count, columns, first_column, column_count, c, ldc, c_init);
  } else {
    mma::multiply_with(*kernel, rows, row_count, columns, first_column, column_count, c, ldc, scratch, c_init);
  }
}

}  // namespace isobit::cpu
