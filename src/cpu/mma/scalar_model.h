// The engine's way back to the scalar model: single lanes that leave the fast path, and whole tiles.
#pragma once

#include "cpu/mma/layout.h"

namespace isobit::cpu::mma {

// Computes the step of the flagged columns of a row, from the chains as they were before the step, into its patches.
void resolve_flagged(const Step& step, int64_t row, uint64_t flagged, const uint8_t* position);

// Puts the patches into the row's chains, after the step.
void apply_patches(const Step& step, int64_t row, uint64_t flagged, const uint8_t* position);

// The exponent byte of a chain's value.
int8_t exponent_byte(double value);

// multiply_tile without SIMD.
void multiply_tile_scalar(const DecodedRows& rows, int64_t row_count, const Matrix16& columns, int64_t first_column,
                          int column_count, float* c, int64_t ldc, const float* c_init);

}  // namespace isobit::cpu::mma
