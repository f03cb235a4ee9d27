// One step with AVX-512: 64 columns are one vector of bytes and eight of doubles; embedded rounding leaves MXCSR alone.
//
// A pipeline over pairs of rows in which one loop over the 16 elements does three things at once: the products of this
// pair (FMA pipes), the count of the next pair's lost bits and the exponents of the pair after that (integer pipes).
// The end of one pair is interleaved with the start of the next. The loop stays rolled: unrolled, g++ 12 spills the
// accumulators (20 % slower, 2026-11-29, Zen 4).
//
// This file is compiled for AVX-512. It must define nothing that another translation unit could be linked to by
// accident: no inline function of a shared header, no template of the standard library.
#include <immintrin.h>

#include "cpu/mma/avx512_decode.h"
#include "cpu/mma/layout.h"
#include "cpu/mma/scalar_model.h"

namespace isobit::cpu::mma {
namespace avx512 {
namespace {

constexpr int kVectors = 8;  // of doubles, for 64 columns
constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
constexpr int kUp = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;

struct Tables {
  alignas(64) uint8_t start[kVectors][64];  // bytes of M from (words of E, counts), see start_index()
  alignas(64) uint16_t top_words[32];       // the top 16 bits of two vectors of doubles, twice
  alignas(64) uint8_t position[kTileColumns];
};

constexpr Tables make_tables() {
  Tables tables{};
  for (int v = 0; v < kVectors; ++v) {
    for (int lane = 0; lane < 8; ++lane) {
      const int word = v % 4 * 8 + lane;
      tables.start[v][lane * 8 + 7] = static_cast<uint8_t>(2 * word + 1);
      tables.start[v][lane * 8 + 6] = static_cast<uint8_t>(2 * word);
      tables.start[v][lane * 8 + 0] = static_cast<uint8_t>(64 + v * 8 + lane);
    }
  }
  for (int i = 0; i < 32; ++i) {
    tables.top_words[i] = static_cast<uint16_t>(i / 8 % 2 * 32 + i % 8 * 4 + 3);
  }
  for (int j = 0; j < kTileColumns; ++j) tables.position[j] = static_cast<uint8_t>(j);
  return tables;
}

constexpr Tables kTables = make_tables();

// Two rows on their way through the step; past the last row, idle ones.
struct Pair {
  int64_t row;
  const RowGroup* rows;
  RowState* states;
};

[[gnu::always_inline]] inline Pair pair_at(const Step& step, int64_t row) {
  if (row < step.row_count) return {row, step.rows + row, step.states + row};
  return {step.row_count, step.scratch->idle_rows, step.states + step.row_count};
}

[[gnu::always_inline]] inline __m512i largest_exponent(__m512i so_far, __m512i column, int32_t row) {
  return _mm512_max_epi8(so_far, _mm512_add_epi8(column, _mm512_set1_epi32(row)));
}

// From the largest exponent of the products: E, and the columns that the scalar model takes.
[[gnu::always_inline]] inline void settle_exponents(const Step& step, const Pair& pair, const __m512i (&largest)[2]) {
  const ColumnTile& tile = step.scratch->tile;
  const __m512i cap = _mm512_load_si512(tile.exponent_cap);
#pragma GCC unroll 2
  for (int r = 0; r < 2; ++r) {
    RowState& state = pair.states[r];
    const int8_t low = step.low[pair.row + r];
    const __m512i products = _mm512_adds_epi8(largest[r], _mm512_set1_epi8(step.base[pair.row + r]));
    const __m512i exponent = _mm512_max_epi8(_mm512_min_epi8(products, cap), _mm512_load_si512(state.exponent));
    _mm512_store_si512(state.step_exponent, exponent);
    const uint64_t too_low = _mm512_cmplt_epi8_mask(exponent, _mm512_set1_epi8(low));
    const uint64_t too_high = _mm512_cmpgt_epi8_mask(exponent, _mm512_set1_epi8(kHighestExponent));
    const uint64_t exempt = low == kAllFlagged ? 0 : tile.zero_columns;
    state.flagged = ((too_low & ~exempt) | too_high | tile.special_columns) & step.valid_columns;
    if (__builtin_expect(state.flagged != 0 && pair.row < step.row_count, 0)) {
      resolve_flagged(step, pair.row + r, state.flagged, kTables.position);
    }
  }
}

// A negative product loses bits when the column's lowest bit is below this minus the row's.
[[gnu::always_inline]] inline __m512i lost_limit(const Step& step, const Pair& pair, int r) {
  const int threshold = step.base[pair.row + r] + step.lost_threshold;
  const __m512i relative = _mm512_subs_epi8(_mm512_load_si512(pair.states[r].step_exponent),
                                            _mm512_set1_epi8(static_cast<int8_t>(threshold)));
  return _mm512_min_epi8(relative, _mm512_set1_epi8(60));
}

[[gnu::always_inline]] inline __m512i count_lost(__m512i count, __m512i limit, const ColumnTile& tile,
                                                 const RowGroup& row, int i) {
  // lost_table counts bytes from one table to another: from the start of all, not within a row of the first.
  const int8_t* const lowest = reinterpret_cast<const int8_t*>(tile.lowest) + i * kTileColumns + row.lost_table[i];
  const __m512i needed = _mm512_sub_epi8(limit, _mm512_set1_epi32(row.lowest[i]));
  const __mmask64 lost = _mm512_cmpgt_epi8_mask(needed, _mm512_load_si512(lowest));
  return _mm512_mask_sub_epi8(count, lost, count, _mm512_set1_epi8(-1));
}

// The top 16 bits of M for 32 columns.
[[gnu::always_inline]] inline __m512i start_words(const int8_t* exponents) {
  const __m512i words = _mm512_cvtepi8_epi16(_mm256_load_si256(reinterpret_cast<const __m256i*>(exponents)));
  return _mm512_add_epi16(_mm512_slli_epi16(words, 4), _mm512_set1_epi16(((1023 + 27) << 4) | 8));
}

// M + lost units + c truncated: the sum that the products are added to.
[[gnu::always_inline]] inline __m512d start_sum(__m512i words, __m512i lost, int v, const double* chain) {
  constexpr __mmask64 kBytes = 0xC1C1C1C1C1C1C1C1;
  const __m512i index = _mm512_load_si512(kTables.start[v]);
  const __m512d origin = _mm512_castsi512_pd(_mm512_maskz_permutex2var_epi8(kBytes, words, index, lost));
  const __m512d c = _mm512_load_pd(chain + v * 8);
  const __mmask8 negative = _mm512_movepi64_mask(_mm512_castpd_si512(c));
  return _mm512_mask_add_round_pd(_mm512_add_round_pd(origin, c, kDown), negative, origin, c, kUp);
}

// sum - M, cut to fp32. M has the sum's exponent field, and 1000... as its mantissa.
[[gnu::always_inline]] inline __m512i finish_sum(__m512d sum) {
  const __m512i exponent_field = _mm512_set1_epi64(~((int64_t{1} << 52) - 1));
  const __m512i half = _mm512_set1_epi64(int64_t{1} << 51);
  const __m512i origin = _mm512_ternarylogic_epi64(_mm512_castpd_si512(sum), exponent_field, half, 0xEA);
  const __m512d difference = _mm512_sub_pd(sum, _mm512_castsi512_pd(origin));
  return _mm512_and_si512(_mm512_castpd_si512(difference), _mm512_set1_epi64(~((int64_t{1} << 29) - 1)));
}

// The exponents of 32 values each of whose top words stand in `low` (columns 0-15) and `high` (columns 32-47 of the
// same 16 apart), ready to be packed.
[[gnu::always_inline]] inline __m512i exponent_words(__m512i low, __m512i high) {
  const __m512i words = _mm512_mask_blend_epi64(0xF0, low, high);
  return _mm512_sub_epi16(_mm512_srli_epi16(_mm512_slli_epi16(words, 1), 5), _mm512_set1_epi16(1023));
}

// Ends row r of `pair` and starts row r of `next` in its registers.
[[gnu::always_inline]] inline void turn_over(const Pair& pair, const Pair& next, int r, __m512i lost,
                                             __m512d (&sums)[kVectors]) {
  double* const chain = pair.states[r].value;
  const __m512i index = _mm512_load_si512(kTables.top_words);
  __m512i top[kVectors / 2];
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m512i words = start_words(next.states[r].step_exponent + 32 * half);
    __m512i values[4];
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      const int v = 4 * half + u;
      values[u] = finish_sum(sums[v]);
      _mm512_store_si512(chain + v * 8, values[u]);
      sums[v] = start_sum(words, lost, v, next.states[r].value);
    }
    top[2 * half] = _mm512_permutex2var_epi16(values[0], index, values[2]);
    top[2 * half + 1] = _mm512_permutex2var_epi16(values[1], index, values[3]);
  }
  // Packing takes 8 words from each operand in turn, which puts the columns in order.
  const __m512i exponents = _mm512_packs_epi16(exponent_words(top[0], top[2]), exponent_words(top[1], top[3]));
  _mm512_store_si512(pair.states[r].exponent, exponents);
}

struct Registers {
  __m512d sums[2][kVectors];
  __m512i limit[2];  // of the pair whose lost bits are counted
  __m512i lost[2];
  __m512i largest[2];  // of the pair whose exponents are sought
};

[[gnu::always_inline]] inline void begin_loop(const Step& step, const Pair& counted, Registers* reg) {
#pragma GCC unroll 2
  for (int r = 0; r < 2; ++r) {
    reg->limit[r] = lost_limit(step, counted, r);
    reg->lost[r] = _mm512_setzero_si512();
    reg->largest[r] = _mm512_set1_epi8(-128);
  }
}

[[gnu::always_inline]] inline void multiply_vector(const ColumnTile& tile, int i, int v, __m512d first, __m512d second,
                                                   Registers* reg) {
  const __m512d column = _mm512_load_pd(&tile.value[i][v * 8]);
  reg->sums[0][v] = _mm512_fmadd_round_pd(column, first, reg->sums[0][v], kDown);
  reg->sums[1][v] = _mm512_fmadd_round_pd(column, second, reg->sums[1][v], kDown);
}

// The loop over the elements, with the byte work spread between the products.
[[gnu::always_inline]] inline void loop(const ColumnTile& tile, const Pair& multiplied, const Pair& counted,
                                        const Pair& sought, Registers* reg) {
  const RowGroup* const a = multiplied.rows;
  const RowGroup* const b = counted.rows;
  const RowGroup* const c = sought.rows;
  const char* const ahead = reinterpret_cast<const char*>(c + 2);
#pragma GCC unroll 1
  for (int i = 0; i < kGroup; ++i) {
    const __m512d first = _mm512_set1_pd(a[0].value[i]);
    const __m512d second = _mm512_set1_pd(a[1].value[i]);
    const __m512i exponents = _mm512_load_si512(tile.exponent[i]);
    _mm_prefetch(ahead + i * 64, _MM_HINT_T0);
    multiply_vector(tile, i, 0, first, second, reg);
    reg->largest[0] = largest_exponent(reg->largest[0], exponents, c[0].exponent[i]);
    multiply_vector(tile, i, 1, first, second, reg);
    multiply_vector(tile, i, 2, first, second, reg);
    reg->lost[0] = count_lost(reg->lost[0], reg->limit[0], tile, b[0], i);
    multiply_vector(tile, i, 3, first, second, reg);
    multiply_vector(tile, i, 4, first, second, reg);
    reg->largest[1] = largest_exponent(reg->largest[1], exponents, c[1].exponent[i]);
    multiply_vector(tile, i, 5, first, second, reg);
    reg->lost[1] = count_lost(reg->lost[1], reg->limit[1], tile, b[1], i);
    multiply_vector(tile, i, 6, first, second, reg);
    multiply_vector(tile, i, 7, first, second, reg);
  }
}

// The exponents of a pair without a pair to multiply.
void seek_exponents(const Step& step, const Pair& pair) {
  __m512i largest[2] = {_mm512_set1_epi8(-128), _mm512_set1_epi8(-128)};
  for (int i = 0; i < kGroup; ++i) {
    const __m512i exponents = _mm512_load_si512(step.scratch->tile.exponent[i]);
    largest[0] = largest_exponent(largest[0], exponents, pair.rows[0].exponent[i]);
    largest[1] = largest_exponent(largest[1], exponents, pair.rows[1].exponent[i]);
  }
  settle_exponents(step, pair, largest);
}

// Lost bits and sums of the first pair.
[[gnu::always_inline]] inline void fill_pipeline(const Step& step, const Pair& pair, Registers* reg) {
  begin_loop(step, pair, reg);
#pragma GCC unroll 1
  for (int i = 0; i < kGroup; ++i) {
    reg->lost[0] = count_lost(reg->lost[0], reg->limit[0], step.scratch->tile, pair.rows[0], i);
    reg->lost[1] = count_lost(reg->lost[1], reg->limit[1], step.scratch->tile, pair.rows[1], i);
  }
#pragma GCC unroll 2
  for (int r = 0; r < 2; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const __m512i words = start_words(pair.states[r].step_exponent + v / 4 * 32);
      reg->sums[r][v] = start_sum(words, reg->lost[r], v, pair.states[r].value);
    }
  }
}

void run_step(const Step& step) {
  Registers reg;
  Pair multiplied = pair_at(step, 0);
  Pair counted = pair_at(step, 2);
  seek_exponents(step, multiplied);
  seek_exponents(step, counted);
  fill_pipeline(step, multiplied, &reg);
  while (multiplied.row < step.row_count) {
    const Pair sought = pair_at(step, counted.row + 2);
    begin_loop(step, counted, &reg);
    loop(step.scratch->tile, multiplied, counted, sought, &reg);
    settle_exponents(step, sought, reg.largest);
    turn_over(multiplied, counted, 0, reg.lost[0], reg.sums[0]);
    turn_over(multiplied, counted, 1, reg.lost[1], reg.sums[1]);
    for (int r = 0; r < 2; ++r) {
      const uint64_t flagged = multiplied.states[r].flagged;
      if (__builtin_expect(flagged != 0, 0)) apply_patches(step, multiplied.row + r, flagged, kTables.position);
    }
    multiplied = counted;
    counted = sought;
  }
}

}  // namespace
}  // namespace avx512

const Kernel* avx512_kernel() {
  static constexpr Kernel kKernel = {avx512::decode_tile, avx512::run_step, avx512::kTables.position};
  return &kKernel;
}

}  // namespace isobit::cpu::mma
