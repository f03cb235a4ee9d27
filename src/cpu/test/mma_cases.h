// Inputs that try every branch of the exact engine, and the chain of the scalar model as the expected answer.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "cpu/mma/multiply_tile.h"

namespace isobit::cpu::test {

enum class Distribution {
  kNormal,
  kSmall,    // columns with sigma 0.02, as language model heads have
  kSpread6,  // exponents spread by +-6
  kWide,     // by +-30 (fp16: over its whole range)
  kHalfZeros,
  kSubnormal,       // subnormal and tiny elements
  kAllBits,         // every bit pattern, NaN and infinities thinned out
  kSparseSpecials,  // one element in 500 is NaN or infinite
  kHuge,            // products overflow fp32 (fp16: the largest magnitudes)
  kMaxMantissa,     // the largest sums that one exponent allows
  kTrailingZeros,   // products on the border between exact and truncated
  kOutliers,
  kMeetZeros,  // large row elements meet zeros: E lies far below its bound
  kLow,        // exponent sums at the lower end of the fast path, subnormal results
  kCancel,     // each product of the first half of a group is repeated with the other sign in the second half
  kZeroParts,  // zero rows, zero columns and zero groups
};

constexpr Distribution kDistributions[] = {
    Distribution::kNormal,    Distribution::kSmall,       Distribution::kSpread6,       Distribution::kWide,
    Distribution::kHalfZeros, Distribution::kSubnormal,   Distribution::kAllBits,       Distribution::kSparseSpecials,
    Distribution::kHuge,      Distribution::kMaxMantissa, Distribution::kTrailingZeros, Distribution::kOutliers,
    Distribution::kMeetZeros, Distribution::kLow,         Distribution::kCancel,        Distribution::kZeroParts};

const char* distribution_name(Distribution distribution);

// A product to check: rows [n, k] times columns [v, k], from start values [n, v] (empty: +0).
struct Case {
  Format format;
  int64_t n;
  int64_t v;
  int64_t k;
  std::vector<uint16_t> rows;
  std::vector<uint16_t> columns;
  std::vector<float> start;

  Matrix16 row_matrix() const { return {rows.data(), n, k, k, format}; }
  Matrix16 column_matrix() const { return {columns.data(), v, k, k, format}; }
  const float* start_data() const { return start.empty() ? nullptr : start.data(); }
};

Case make_case(Distribution distribution, Format format, int64_t n, int64_t v, int64_t k, bool with_start,
               std::mt19937_64* random);

// The scalar model's chains, [n, v].
std::vector<float> expected_result(const Case& c);

// All of the product by multiply_tile, tile after tile, on the active SIMD target.
std::vector<float> multiply(const Matrix16& rows, const Matrix16& columns, const float* start);

// The number of elements whose bits differ; prints the first one.
int64_t count_differences(const std::vector<float>& expected, const std::vector<float>& got, int64_t width);

}  // namespace isobit::cpu::test
