// Exact Hopper tensor-core products on the CPU: tiles of rows x columns, bit for bit the chain of
// numerics::hopper_mma_step, at several G multiply-accumulates per second and core.
//
//   decode_rows    rows of the left operand -> a form that every tile of columns reuses
//   multiply_tile  decoded rows x up to 64 rows of the right operand ("columns" of the result) -> fp32
//
// Every output is a chain of its own: no split over rows, columns, calls or threads changes a bit, and neither does the
// SIMD target. All memory belongs to the caller; nothing is allocated; calls with separate scratch may run at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace isobit::cpu {

enum class Format { kBf16, kFp16 };

// A matrix of 16-bit floats, row-major with any row stride (in elements, negative and zero too). Need not be aligned
// beyond 2 bytes.
struct Matrix16 {
  const uint16_t* data;
  int64_t rows;
  int64_t k;
  int64_t row_stride;
  Format format;
};

constexpr int kTileColumns = 64;

// Bytes for the decoded form of `rows` rows of k elements, about 22 per element. Any alignment will do, but the bytes
// must not be moved once written.
size_t decoded_rows_bytes(int64_t rows, int64_t k);

// Decodes rows [first, first + count) of the matrix.
void decode_rows(const Matrix16& rows, int64_t first, int64_t count, void* decoded);

// Bytes of working memory for one call of multiply_tile with `rows` rows; about 1.1 KB a row. Any alignment will do.
size_t tile_scratch_bytes(int64_t rows);

// c[r * ldc + j] = the chain over ascending groups of 16 of row r of the decoded rows times row first_column + j of
// `columns`, for r < row_count and j < column_count (at most kTileColumns). The last group is padded with +0. A chain
// starts from c_init[r * ldc + j], or from +0 where c_init is null; c_init may be c. Every NaN written is 7FFFFFFF
// (a start value that is never multiplied, k = 0, passes unchanged).
//   decoded_rows  of decode_rows, with at least row_count rows, the same k and the same format as `columns`
//   scratch       tile_scratch_bytes(row_count) bytes, contents irrelevant before and after
void multiply_tile(const void* decoded_rows, int64_t row_count, const Matrix16& columns, int64_t first_column,
                   int column_count, float* c, int64_t ldc, void* scratch, const float* c_init = nullptr);

}  // namespace isobit::cpu
