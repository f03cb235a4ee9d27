// This file is compiled for AVX-512. It must define nothing that another translation unit could be linked to by
// accident: no inline function of a shared header, no template of the standard library.
#include "cpu/mma/avx512_decode.h"

#include <immintrin.h>

namespace isobit::cpu::mma::avx512 {
namespace {

template <Format F>
struct Constants {
  static constexpr int kMantissa = F == Format::kBf16 ? 7 : 10;
  static constexpr int kBias = F == Format::kBf16 ? 127 : 15;
  static constexpr int kInfinity = F == Format::kBf16 ? 0x7F80 : 0x7C00;
};

// 16 x 16 words.
[[gnu::always_inline]] inline void transpose(__m512i (&rows)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    rows[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    rows[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    rows[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(rows[i], rows[i + 4], 0xDD);
    t[i + 8] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(rows[i + 8], rows[i + 12], 0xDD);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    rows[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    rows[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xDD);
    rows[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xDD);
  }
}

[[gnu::always_inline]] inline __m256i load16(const uint16_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}

// The largest magnitude, as bits.
[[gnu::always_inline]] inline int largest_magnitude(const ColumnGroup& columns) {
  const __m256i magnitude = _mm256_set1_epi16(0x7FFF);
  __m256i even = _mm256_setzero_si256();
  __m256i odd = even;
  for (int j = 0; j < kTileColumns; j += 2) {
    even = _mm256_max_epu16(even, _mm256_and_si256(load16(columns[j]), magnitude));
    odd = _mm256_max_epu16(odd, _mm256_and_si256(load16(columns[j + 1]), magnitude));
  }
  const __m256i both = _mm256_max_epu16(even, odd);
  const __m128i eight = _mm_max_epu16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  const __m128i smallest_complement = _mm_minpos_epu16(_mm_xor_si128(eight, _mm_set1_epi16(-1)));
  return 0xFFFF ^ _mm_extract_epi16(smallest_complement, 0);
}

// Two columns of 16 elements -> per element a word: bits 16-31 the element, byte 1 its lowest bit, byte 0 its exponent.
template <Format F>
[[gnu::always_inline]] inline void describe(__m512i elements, int base, __m512i* first, __m512i* second) {
  constexpr int kMantissa = Constants<F>::kMantissa;
  const __m512i one = _mm512_set1_epi16(1);
  const __m512i limit = _mm512_set1_epi16(-64);
  const __m512i size = _mm512_and_si512(elements, _mm512_set1_epi16(0x7FFF));
  const __m512i field = _mm512_srli_epi16(size, kMantissa);
  const __m512i hidden =
      _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(field, field), _mm512_set1_epi16(1 << kMantissa));
  const __m512i significand = _mm512_or_si512(_mm512_and_si512(size, _mm512_set1_epi16((1 << kMantissa) - 1)), hidden);
  const __m512i zeros = _mm512_popcnt_epi16(_mm512_andnot_si512(significand, _mm512_sub_epi16(significand, one)));
  const __mmask32 nonzero = _mm512_test_epi16_mask(size, size);
  const __m512i exponent =
      _mm512_sub_epi16(_mm512_max_epi16(field, one), _mm512_set1_epi16(static_cast<short>(Constants<F>::kBias + base)));
  const __m512i lowest =
      _mm512_mask_max_epi16(_mm512_set1_epi16(127), nonzero, _mm512_add_epi16(exponent, zeros), limit);
  const __m512i limited = _mm512_mask_max_epi16(limit, nonzero, exponent, limit);
  const __m512i bytes =
      _mm512_or_si512(_mm512_and_si512(limited, _mm512_set1_epi16(255)), _mm512_slli_epi16(lowest, 8));
  *first = _mm512_or_si512(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(elements)), 16),
                           _mm512_cvtepu16_epi32(_mm512_castsi512_si256(bytes)));
  *second = _mm512_or_si512(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(elements, 1)), 16),
                            _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(bytes, 1)));
}

template <Format F>
[[gnu::always_inline]] inline __m512 to_floats(__m512i words) {
  if constexpr (F == Format::kBf16) {
    return _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))));
  }
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(words, 16)));
}

// Element i of 16 columns into the tile.
template <Format F>
[[gnu::always_inline]] inline void store_element(__m512i words, int i, int first_column, ColumnTile* tile) {
  const __m512 floats = to_floats<F>(words);
  _mm512_store_pd(&tile->value[i][first_column], _mm512_cvtps_pd(_mm512_castps512_ps256(floats)));
  _mm512_store_pd(&tile->value[i][first_column + 8], _mm512_cvtps_pd(_mm512_extractf32x8_ps(floats, 1)));
  const __mmask16 negative = _mm512_movepi32_mask(words);
  const __m128i never = _mm_set1_epi8(127);
  const __m128i lowest = _mm512_cvtepi32_epi8(_mm512_srli_epi32(words, 8));
  _mm_store_si128(reinterpret_cast<__m128i*>(&tile->exponent[i][first_column]), _mm512_cvtepi32_epi8(words));
  _mm_store_si128(reinterpret_cast<__m128i*>(&tile->lowest[0][i][first_column]),
                  _mm_mask_mov_epi8(never, negative, lowest));
  _mm_store_si128(reinterpret_cast<__m128i*>(&tile->lowest[1][i][first_column]),
                  _mm_mask_mov_epi8(lowest, negative, never));
}

template <Format F>
bool decode(const ColumnGroup& columns, ColumnTile* tile) {
  const int largest = largest_magnitude(columns);
  if (largest >= Constants<F>::kInfinity) return false;
  const int field = largest >> Constants<F>::kMantissa;
  const int base = (field == 0 ? 1 : field) - Constants<F>::kBias;
  tile->base = largest == 0 ? kZeroBase : base;
  uint64_t zero_columns = 0;
  for (int j = 0; j < kTileColumns; j += 16) {
    __m512i words[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
      describe<F>(_mm512_load_si512(columns[j + i]), base, &words[i], &words[i + 1]);
    }
    transpose(words);
    __m512i any = words[0];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      any = _mm512_or_si512(any, words[i]);
      store_element<F>(words[i], i, j, tile);
    }
    const __mmask16 zero = _mm512_testn_epi32_mask(any, _mm512_set1_epi32(0x7FFF0000));
    zero_columns |= static_cast<uint64_t>(zero) << j;
  }
  tile->zero_columns = zero_columns;
  _mm512_store_si512(tile->exponent_cap,
                     _mm512_mask_mov_epi8(_mm512_set1_epi8(127), zero_columns, _mm512_set1_epi8(-128)));
  return true;
}

}  // namespace

bool decode_tile(const ColumnGroup& columns, Format format, ColumnTile* tile) {
  return format == Format::kBf16 ? decode<Format::kBf16>(columns, tile) : decode<Format::kFp16>(columns, tile);
}

}  // namespace isobit::cpu::mma::avx512
