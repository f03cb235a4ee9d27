#include "cpu/mma/portable_decode.h"

#include <algorithm>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();  // gives the functions the target attributes that Highway's own have
namespace isobit::cpu::mma::portable {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Eight 16-bit lanes: one element of eight columns, or eight elements of one column.
using Elements = hn::Full128<uint16_t>;
using SignedElements = hn::Full128<int16_t>;
using ElementVector = hn::Vec<Elements>;
constexpr Elements kElements;
constexpr SignedElements kSigned;

template <Format F>
struct Constants {
  static constexpr int kMantissa = mantissa_bits(F);
  static constexpr int kBias = F == Format::kBf16 ? 127 : 15;
  static constexpr int kInfinity = F == Format::kBf16 ? 0x7F80 : 0x7C00;
};

// The largest magnitude, as bits.
int largest_magnitude(const ColumnGroup& columns) {
  const ElementVector magnitude = hn::Set(kElements, 0x7FFF);
  ElementVector low = hn::Zero(kElements);
  ElementVector high = low;
  for (int j = 0; j < kTileColumns; ++j) {
    low = hn::Max(low, hn::And(hn::Load(kElements, columns[j]), magnitude));
    high = hn::Max(high, hn::And(hn::Load(kElements, columns[j] + 8), magnitude));
  }
  alignas(16) uint16_t lanes[8];
  hn::Store(hn::Max(low, high), kElements, lanes);
  return *std::max_element(lanes, lanes + 8);
}

// 8 x 8 elements.
void transpose(ElementVector (&rows)[8]) {
  const hn::Full128<uint32_t> words;
  const hn::Full128<uint64_t> pairs;
  ElementVector t[8];
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = hn::InterleaveLower(kElements, rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = hn::InterleaveUpper(kElements, rows[2 * i], rows[2 * i + 1]);
  }
  // t[2i], t[2i+1]: elements 0-3 and 4-7 of rows 2i, 2i+1.
  hn::Vec<hn::Full128<uint32_t>> u[8];
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 2; ++i) {
      const auto a = hn::BitCast(words, t[4 * i + half]);
      const auto b = hn::BitCast(words, t[4 * i + 2 + half]);
      u[4 * half + 2 * i] = hn::InterleaveLower(words, a, b);
      u[4 * half + 2 * i + 1] = hn::InterleaveUpper(words, a, b);
    }
  }
  // u[4h + 2i + s]: elements 4h + 2s and the next one, of rows 4i to 4i + 3.
  for (int half = 0; half < 2; ++half) {
    for (int s = 0; s < 2; ++s) {
      const auto a = hn::BitCast(pairs, u[4 * half + s]);
      const auto b = hn::BitCast(pairs, u[4 * half + 2 + s]);
      rows[4 * half + 2 * s] = hn::BitCast(kElements, hn::InterleaveLower(pairs, a, b));
      rows[4 * half + 2 * s + 1] = hn::BitCast(kElements, hn::InterleaveUpper(pairs, a, b));
    }
  }
}

// Exponent and lowest-bit bytes of one element of eight columns.
template <Format F>
void store_bytes(ElementVector elements, int base, int i, int j, ColumnTile* tile) {
  constexpr int kMantissa = Constants<F>::kMantissa;
  const hn::Full64<int8_t> bytes;
  const auto one = hn::Set(kElements, 1);
  const auto never = hn::Set(kSigned, 127);
  const auto limit = hn::Set(kSigned, -64);
  const auto size = hn::And(elements, hn::Set(kElements, 0x7FFF));
  const auto field = hn::ShiftRight<kMantissa>(size);
  const auto hidden = hn::IfThenZeroElse(hn::Eq(field, hn::Zero(kElements)), hn::Set(kElements, 1 << kMantissa));
  const auto significand = hn::Or(hn::And(size, hn::Set(kElements, (1 << kMantissa) - 1)), hidden);
  const auto zeros = hn::PopulationCount(hn::AndNot(significand, hn::Sub(significand, one)));
  const auto offset = hn::Set(kSigned, static_cast<int16_t>(Constants<F>::kBias + base));
  const auto exponent = hn::Sub(hn::BitCast(kSigned, hn::Max(field, one)), offset);
  const auto lowest = hn::Max(hn::Add(exponent, hn::BitCast(kSigned, zeros)), limit);
  const auto zero = hn::Eq(hn::BitCast(kSigned, size), hn::Zero(kSigned));
  const auto negative = hn::Lt(hn::BitCast(kSigned, elements), hn::Zero(kSigned));
  const auto counted = hn::IfThenElse(zero, never, lowest);
  hn::Store(hn::DemoteTo(bytes, hn::IfThenElse(zero, limit, hn::Max(exponent, limit))), bytes, &tile->exponent[i][j]);
  hn::Store(hn::DemoteTo(bytes, hn::IfThenElse(negative, counted, never)), bytes, &tile->lowest[0][i][j]);
  hn::Store(hn::DemoteTo(bytes, hn::IfThenElse(negative, never, counted)), bytes, &tile->lowest[1][i][j]);
}

// The floats of four even and four odd columns to doubles, in the order of position().
template <class Floats>
void store_doubles(Floats even, Floats odd, double* to) {
  const hn::CappedTag<double, 4> doubles;
  constexpr size_t kLanes = hn::MaxLanes(doubles);
  if constexpr (kLanes == 4) {
    hn::Store(hn::PromoteTo(doubles, even), doubles, to);
    hn::Store(hn::PromoteTo(doubles, odd), doubles, to + 4);
  } else {
    const hn::Full64<float> half;
    const hn::Full128<float> full;
    hn::Store(hn::PromoteTo(doubles, hn::LowerHalf(half, even)), doubles, to);
    hn::Store(hn::PromoteTo(doubles, hn::LowerHalf(half, odd)), doubles, to + 2);
    hn::Store(hn::PromoteTo(doubles, hn::UpperHalf(half, even)), doubles, to + 4);
    hn::Store(hn::PromoteTo(doubles, hn::UpperHalf(half, odd)), doubles, to + 6);
    static_cast<void>(full);
  }
}

template <Format F>
void store_values(ElementVector elements, double* to) {
  const hn::Full128<float> floats;
  const hn::Full128<uint32_t> words;
  if constexpr (F == Format::kBf16) {
    const auto pairs = hn::BitCast(words, elements);
    const auto even = hn::BitCast(floats, hn::ShiftLeft<16>(pairs));
    const auto odd = hn::BitCast(floats, hn::And(pairs, hn::Set(words, 0xFFFF0000u)));
    store_doubles(even, odd, to);
  } else {
    const hn::Full64<uint16_t> four;
    const hn::Full64<hwy::float16_t> halves;
    const auto even = hn::LowerHalf(four, hn::ConcatEven(kElements, elements, elements));
    const auto odd = hn::LowerHalf(four, hn::ConcatOdd(kElements, elements, elements));
    store_doubles(hn::PromoteTo(floats, hn::BitCast(halves, even)), hn::PromoteTo(floats, hn::BitCast(halves, odd)),
                  to);
  }
}

template <Format F>
bool decode(const ColumnGroup& columns, ColumnTile* tile) {
  const int largest = largest_magnitude(columns);
  if (largest >= Constants<F>::kInfinity) return false;
  const int base = std::max(largest >> Constants<F>::kMantissa, 1) - Constants<F>::kBias;
  tile->base = largest == 0 ? kZeroBase : base;
  tile->zero_columns = 0;
  for (int j = 0; j < kTileColumns; j += 8) {
    ElementVector any = hn::Zero(kElements);
    for (int begin = 0; begin < kGroup; begin += 8) {
      ElementVector elements[8];
      for (int c = 0; c < 8; ++c) elements[c] = hn::Load(kElements, columns[j + c] + begin);
      transpose(elements);
      for (int i = 0; i < 8; ++i) {
        any = hn::Or(any, elements[i]);
        store_bytes<F>(elements[i], base, begin + i, j, tile);
        store_values<F>(elements[i], &tile->value[begin + i][j]);
      }
    }
    const auto zero = hn::Eq(hn::And(any, hn::Set(kElements, 0x7FFF)), hn::Zero(kElements));
    uint8_t bits[8] = {};
    hn::StoreMaskBits(kElements, zero, bits);
    tile->zero_columns |= static_cast<uint64_t>(bits[0]) << j;
    for (int c = 0; c < 8; ++c) tile->exponent_cap[j + c] = (bits[0] >> c & 1) != 0 ? -128 : 127;
  }
  return true;
}

}  // namespace

bool decode_tile(const ColumnGroup& columns, Format format, ColumnTile* tile) {
  return format == Format::kBf16 ? decode<Format::kBf16>(columns, tile) : decode<Format::kFp16>(columns, tile);
}

}  // namespace isobit::cpu::mma::portable
HWY_AFTER_NAMESPACE();
