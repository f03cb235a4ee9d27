#include "cpu/mma/decode_rows.h"

#include <algorithm>
#include <cstring>

#include "cpu/float_environment.h"
#include "numerics/bits.h"

namespace isobit::cpu {
namespace mma {
namespace {

int32_t replicate(int32_t byte) { return static_cast<int32_t>(0x01010101u * (static_cast<uint32_t>(byte) & 0xFFu)); }

// Exact for finite values; needs subnormal arithmetic on.
template <Format F>
float to_float(uint16_t bits) {
  if constexpr (F == Format::kBf16) return numerics::bits_float(static_cast<uint32_t>(bits) << 16);
  // The fp16 exponent field read as an fp32 one is 112 too small.
  const float size = numerics::bits_float(static_cast<uint32_t>(bits & 0x7FFFu) << 13) * 0x1p112f;
  return numerics::with_sign(size, numerics::bits_float(static_cast<uint32_t>(bits) << 16));
}

// Free of branches, so that the compiler can vectorize it.
template <Format F>
int32_t decode_group(const uint16_t* raw, RowGroup* group) {
  constexpr int kMantissa = mantissa_bits(F);
  constexpr int32_t kBias = F == Format::kBf16 ? 127 : 15;
  constexpr int32_t kInfinity = F == Format::kBf16 ? 0x7F80 : 0x7C00;
  int32_t largest = 0;
  for (int i = 0; i < kGroup; ++i) largest = std::max<int32_t>(largest, raw[i] & 0x7FFF);
  const bool usable = largest != 0 && largest < kInfinity;
  const int32_t base = std::max(largest >> kMantissa, 1) - kBias;
  for (int i = 0; i < kGroup; ++i) {
    const int32_t size = usable ? raw[i] & 0x7FFF : 0;
    const int32_t field = size >> kMantissa;
    const int32_t significand = (size & ((1 << kMantissa) - 1)) | (field != 0 ? 1 << kMantissa : 0);
    const float lowest_bit = static_cast<float>(significand & -significand);
    const int32_t trailing_zeros = static_cast<int32_t>(numerics::float_bits(lowest_bit) >> 23) - 127;
    const int32_t exponent = std::max(field, 1) - kBias - base;
    const int32_t table = raw[i] >> 15 != 0 ? 1 : 0;
    group->value[i] = usable ? to_float<F>(raw[i]) : 0.0f;
    group->exponent[i] = replicate(size == 0 ? -64 : std::max(exponent, -64));
    group->lowest[i] = replicate(size == 0 ? 0 : std::max(exponent + trailing_zeros, -64));
    group->lost_table[i] = (size == 0 ? 2 : table) * kGroup * kTileColumns;
  }
  return largest == 0 ? kZeroBase : usable ? base : kSpecialBase;
}

template <Format F>
void decode_all(const Matrix16& rows, int64_t first, const DecodedRows& parts) {
  const int64_t padded_rows = parts.header->padded_rows;
  for (int64_t g = 0; g < group_count(rows.k); ++g) {
    const int64_t width = std::min<int64_t>(kGroup, rows.k - g * kGroup);
    for (int64_t r = 0; r < padded_rows; ++r) {
      const int64_t at = g * padded_rows + r;
      std::memset(parts.raw[at], 0, sizeof parts.raw[at]);
      if (r < parts.header->rows) {
        const uint16_t* const source = rows.data + (first + r) * rows.row_stride + g * kGroup;
        std::memcpy(parts.raw[at], source, static_cast<size_t>(width) * sizeof(uint16_t));
      }
      parts.bases[at] = decode_group<F>(parts.raw[at], &parts.groups[at]);
    }
  }
}

}  // namespace
}  // namespace mma

size_t decoded_rows_bytes(int64_t rows, int64_t k) {
  const size_t count = static_cast<size_t>(mma::padded_row_count(rows)) * static_cast<size_t>(mma::group_count(k));
  constexpr size_t kPerGroup = sizeof(mma::RowGroup) + mma::kGroup * sizeof(uint16_t) + sizeof(int32_t);
  return 64 + sizeof(mma::RowsHeader) + count * kPerGroup;
}

void decode_rows(const Matrix16& rows, int64_t first, int64_t count, void* decoded) {
  const FloatEnvironment environment(Rounding::kNearest);
  const mma::DecodedRows parts = mma::decoded_rows_parts(decoded, count, rows.k);
  *parts.header = {count, mma::padded_row_count(count), rows.k, rows.format};
  if (rows.format == Format::kBf16) {
    mma::decode_all<Format::kBf16>(rows, first, parts);
  } else {
    mma::decode_all<Format::kFp16>(rows, first, parts);
  }
}

}  // namespace isobit::cpu
