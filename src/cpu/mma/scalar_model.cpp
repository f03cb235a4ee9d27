#include "cpu/mma/scalar_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/mma/decode_rows.h"
#include "numerics/hopper_mma.h"

namespace isobit::cpu::mma {
namespace {

float model_step(Format format, float c, const uint16_t* a, const uint16_t* b) {
  if (numerics::is_nan(c)) return numerics::bits_float(numerics::kNanBits);
  return format == Format::kBf16 ? numerics::hopper_mma_step<numerics::Bf16>(c, a, b)
                                 : numerics::hopper_mma_step<numerics::Fp16>(c, a, b);
}

}  // namespace

int8_t exponent_byte(double value) {
  const int field = static_cast<int>(__builtin_bit_cast(uint64_t, value) >> 52 & 0x7FF);
  return static_cast<int8_t>(std::clamp(field - 1023, -128, 127));
}

void resolve_flagged(const Step& step, int64_t row, uint64_t flagged, const uint8_t* position) {
  for (uint64_t left = flagged; left != 0; left &= left - 1) {
    const int j = __builtin_ctzll(left);
    const float c = static_cast<float>(step.states[row].value[position[j]]);
    step.patches[row][j] = model_step(step.format, c, step.raw_rows[row], step.raw_columns[j]);
  }
}

void apply_patches(const Step& step, int64_t row, uint64_t flagged, const uint8_t* position) {
  RowState& state = step.states[row];
  for (uint64_t left = flagged; left != 0; left &= left - 1) {
    const int j = __builtin_ctzll(left);
    state.value[position[j]] = step.patches[row][j];
    state.exponent[j] = exponent_byte(state.value[position[j]]);
  }
}

void multiply_tile_scalar(const DecodedRows& rows, int64_t row_count, const Matrix16& columns, int64_t first_column,
                          int column_count, float* c, int64_t ldc, const float* c_init) {
  for (int64_t r = 0; r < row_count; ++r) {
    for (int j = 0; j < column_count; ++j) {
      const uint16_t* const column = columns.data + (first_column + j) * columns.row_stride;
      float chain = c_init != nullptr ? c_init[r * ldc + j] : 0.0f;
      for (int64_t g = 0; g < group_count(columns.k); ++g) {
        uint16_t group[kGroup] = {};
        const int64_t width = std::min<int64_t>(kGroup, columns.k - g * kGroup);
        std::memcpy(group, column + g * kGroup, static_cast<size_t>(width) * sizeof(uint16_t));
        chain = model_step(columns.format, chain, rows.raw[g * rows.header->padded_rows + r], group);
      }
      c[r * ldc + j] = chain;
    }
  }
}

}  // namespace isobit::cpu::mma
