#include "cpu/test/mma_cases.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "numerics/hopper_mma.h"

namespace isobit::cpu::test {
namespace {

using numerics::bits_float;
using numerics::float_bits;

// Draws the elements of one matrix.
class Elements {
 public:
  Elements(Format format, bool columns, std::mt19937_64* random)
      : format_(format), columns_(columns), random_(*random) {}

  uint16_t draw(Distribution distribution, int64_t row, int64_t i) {
    const int in_group = static_cast<int>(i % 16);
    if (in_group == 0) group_shift_ = below(40);
    switch (distribution) {
      case Distribution::kNormal:
        return encode(normal());
      case Distribution::kSmall:
        return encode(normal() * (columns_ ? 0.02f : 1.0f));
      case Distribution::kSpread6:
        return encode(std::ldexp(normal(), below(13) - 6));
      case Distribution::kWide:
        return encode(std::ldexp(normal(), bf16() ? below(61) - 30 : below(28) - 16));
      case Distribution::kHalfZeros:
        return below(2) != 0 ? encode(normal()) : static_cast<uint16_t>(below(2) << 15);
      case Distribution::kSubnormal:
        return subnormal();
      case Distribution::kAllBits:
        return all_bits();
      case Distribution::kSparseSpecials:
        return below(500) == 0 ? special() : encode(normal());
      case Distribution::kHuge:
        return huge();
      case Distribution::kMaxMantissa:
        return static_cast<uint16_t>((below(8) == 0 ? below(2) << 15 : 0) | (bf16() ? 0x3FFF : 0x3FFF));
      case Distribution::kTrailingZeros:
        return trailing_zeros();
      case Distribution::kOutliers:
        return encode(normal() * (below(64) == 0 ? 64.0f : 1.0f) * (columns_ ? 0.02f : 1.0f));
      case Distribution::kMeetZeros:
        return meet_zeros(in_group);
      case Distribution::kLow:
        return low(in_group);
      case Distribution::kCancel:
        return cancel(in_group);
      case Distribution::kZeroParts:
        return row % 5 == 2 || i / 16 % 3 == (columns_ ? 1 : 2) ? static_cast<uint16_t>(below(2) << 15)
                                                                : encode(normal());
    }
    return 0;
  }

 private:
  bool bf16() const { return format_ == Format::kBf16; }
  int below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }
  float normal() { return normal_(random_); }
  uint16_t encode(float x) const { return bf16() ? numerics::bf16_from_float(x) : numerics::fp16_from_float(x); }
  uint16_t infinity() const { return bf16() ? 0x7F80 : 0x7C00; }

  uint16_t subnormal() {
    if (below(3) == 0) return static_cast<uint16_t>(below(1 << 16) & (bf16() ? 0x807F : 0x83FF));
    if (!bf16()) return encode(std::ldexp(normal(), -below(20)));
    return encode(std::ldexp(normal(), columns_ ? -below(20) : -(100 + below(30))));
  }

  uint16_t all_bits() {
    const uint16_t bits = static_cast<uint16_t>(random_());
    const bool is_special = (bits & infinity()) == infinity();
    return is_special && below(16) != 0 ? static_cast<uint16_t>(bits & 0xBFFF) : bits;
  }

  uint16_t special() {
    const int mantissa = below(2) != 0 ? 0 : below(1 << 16) & (bf16() ? 0x7F : 0x3FF);
    return static_cast<uint16_t>(infinity() | below(2) << 15 | mantissa);
  }

  uint16_t huge() {
    if (bf16()) return static_cast<uint16_t>((random_() & 0x807F) | static_cast<uint64_t>(127 + 60 + below(8)) << 7);
    return static_cast<uint16_t>((random_() & 0x83FF) | static_cast<uint64_t>(26 + below(5)) << 10);
  }

  uint16_t trailing_zeros() {
    const int bits = bf16() ? 7 : 10;
    const int exponent = bf16() ? 110 + below(18) : 1 + below(30);
    const int mantissa = below(1 << bits) & ((1 << bits) - 1) << below(bits + 1);
    return static_cast<uint16_t>(below(2) << 15 | exponent << bits | (mantissa & ((1 << bits) - 1)));
  }

  uint16_t meet_zeros(int in_group) {
    if (in_group == 0) return columns_ ? uint16_t{0} : encode(bf16() ? 0x1p30f : 0x1p15f);
    if (columns_) return encode(normal());
    return encode(std::ldexp(normal(), bf16() ? -group_shift_ - below(16) : -below(24)));
  }

  uint16_t low(int in_group) {
    if (!bf16()) return encode(std::ldexp(normal(), -10 - below(15)));
    if (in_group < 8) return in_group % 2 != 0 ? uint16_t{0} : encode(std::ldexp(normal(), -60));
    const uint16_t tiny = encode(std::ldexp(normal(), columns_ ? -38 : -41));
    return columns_ && below(40) != 0 ? uint16_t{0} : tiny;
  }

  uint16_t cancel(int in_group) {
    if (in_group < 8) return history_[in_group] = encode(std::ldexp(normal(), below(9) - 4));
    const uint16_t before = history_[in_group - 8];
    return columns_ && below(32) != 0 ? static_cast<uint16_t>(before ^ 0x8000) : before;
  }

  Format format_;
  bool columns_;
  std::mt19937_64& random_;
  std::normal_distribution<float> normal_;
  int group_shift_ = 0;
  uint16_t history_[8] = {};
};

float draw_start(Distribution distribution, std::mt19937_64* random) {
  std::mt19937_64& bits = *random;
  std::normal_distribution<float> normal;
  const bool wild = distribution == Distribution::kAllBits || distribution == Distribution::kSparseSpecials;
  switch (bits() % 8) {
    case 0:
      return bits() % 2 != 0 ? -0.0f : 0.0f;
    case 1:
      return bits_float(static_cast<uint32_t>(bits()) & 0x807FFFFFu);
    case 2:
      return std::ldexp(normal(bits), static_cast<int>(bits() % 80) - 40);
    case 3:
      return wild ? bits_float(static_cast<uint32_t>(bits())) : normal(bits);
    case 4:
      return distribution == Distribution::kHuge ? std::ldexp(normal(bits), 126) : normal(bits);
    case 5:
      return std::ldexp(normal(bits), -static_cast<int>(bits() % 60) - 100);
    case 6:
      return normal(bits) * 30.0f;
    default:
      return distribution == Distribution::kLow ? std::ldexp(normal(bits), -static_cast<int>(bits() % 30) - 118)
                                                : normal(bits);
  }
}

template <class Type>
float chain(const Case& c, int64_t row, int64_t column) {
  float sum = c.start.empty() ? 0.0f : c.start[static_cast<size_t>(row * c.v + column)];
  for (int64_t begin = 0; begin < c.k; begin += 16) {
    uint16_t a[16] = {};
    uint16_t b[16] = {};
    const int64_t count = std::min<int64_t>(16, c.k - begin);
    std::copy_n(c.rows.data() + row * c.k + begin, count, a);
    std::copy_n(c.columns.data() + column * c.k + begin, count, b);
    sum = numerics::hopper_mma_step<Type>(sum, a, b);
  }
  return sum;
}

}  // namespace

const char* distribution_name(Distribution distribution) {
  constexpr const char* kNames[] = {
      "normal", "small",        "spread6",        "wide",     "half zeros", "subnormal", "all bits", "sparse specials",
      "huge",   "max mantissa", "trailing zeros", "outliers", "meet zeros", "low",       "cancel",   "zero parts"};
  return kNames[static_cast<int>(distribution)];
}

Case make_case(Distribution distribution, Format format, int64_t n, int64_t v, int64_t k, bool with_start,
               std::mt19937_64* random) {
  Case c{format, n, v, k, {}, {}, {}};
  Elements row_elements(format, false, random);
  Elements column_elements(format, true, random);
  for (int64_t i = 0; i < n * k; ++i) c.rows.push_back(row_elements.draw(distribution, i / k, i % k));
  for (int64_t i = 0; i < v * k; ++i) c.columns.push_back(column_elements.draw(distribution, i / k, i % k));
  for (int64_t i = 0; with_start && i < n * v; ++i) c.start.push_back(draw_start(distribution, random));
  return c;
}

std::vector<float> expected_result(const Case& c) {
  std::vector<float> result;
  for (int64_t r = 0; r < c.n; ++r) {
    for (int64_t j = 0; j < c.v; ++j) {
      result.push_back(c.format == Format::kBf16 ? chain<numerics::Bf16>(c, r, j) : chain<numerics::Fp16>(c, r, j));
    }
  }
  return result;
}

std::vector<float> multiply(const Matrix16& rows, const Matrix16& columns, const float* start) {
  std::vector<char> decoded(decoded_rows_bytes(rows.rows, rows.k), 'x');
  std::vector<char> scratch(tile_scratch_bytes(rows.rows), 'x');
  std::vector<float> result(static_cast<size_t>(rows.rows * columns.rows), bits_float(0xDEADBEEFu));
  decode_rows(rows, 0, rows.rows, decoded.data());
  for (int64_t j = 0; j < columns.rows; j += kTileColumns) {
    const int count = static_cast<int>(std::min<int64_t>(kTileColumns, columns.rows - j));
    multiply_tile(decoded.data(), rows.rows, columns, j, count, result.data() + j, columns.rows, scratch.data(),
                  start == nullptr ? nullptr : start + j);
  }
  return result;
}

int64_t count_differences(const std::vector<float>& expected, const std::vector<float>& got, int64_t width) {
  int64_t count = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (float_bits(expected[i]) == float_bits(got[i])) continue;
    if (count++ != 0) continue;
    const int64_t at = static_cast<int64_t>(i);
    std::printf("first difference at [%lld, %lld]: expected %08x (%g), got %08x (%g)\n",
                static_cast<long long>(at / width), static_cast<long long>(at % width), float_bits(expected[i]),
                static_cast<double>(expected[i]), float_bits(got[i]), static_cast<double>(got[i]));
  }
  return count;
}

}  // namespace isobit::cpu::test
