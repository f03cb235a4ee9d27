// One step with Highway: AVX2 or NEON, what the library is compiled for. Neither can round a single instruction toward
// zero, so the sums of all rows are formed in one call with the thread's rounding set, apart from the byte work and
// from the scalar model. (Toward zero is rounding down here, since every sum is positive.)
#include <hwy/highway.h>

#include "cpu/float_environment.h"
#include "cpu/mma/layout.h"
#include "cpu/mma/portable_decode.h"
#include "cpu/mma/scalar_model.h"

HWY_BEFORE_NAMESPACE();  // gives the functions the target attributes that Highway's own have
namespace isobit::cpu::mma {
namespace portable {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::CappedTag<double, 4>;
using Words = hn::Repartition<int32_t, Doubles>;
using Bytes = hn::Repartition<int8_t, Doubles>;
constexpr Doubles kDoubles;
constexpr Words kWords;
constexpr Bytes kBytes;
constexpr hn::Rebind<int8_t, Words> kWordBytes;
constexpr hn::Repartition<uint64_t, Doubles> kLongs;
constexpr hn::Repartition<uint32_t, Doubles> kUnsigned;

constexpr int kLanes = static_cast<int>(hn::MaxLanes(kDoubles));
constexpr int kByteLanes = 8 * kLanes;
constexpr int kByteVectors = kTileColumns / kByteLanes;

struct Positions {
  uint8_t of[kTileColumns];
};

constexpr Positions make_positions() {
  Positions positions{};
  for (int j = 0; j < kTileColumns; ++j) positions.of[j] = static_cast<uint8_t>(position(j, kLanes));
  return positions;
}

constexpr Positions kPositions = make_positions();

template <class Mask>
uint64_t mask_bits(Mask mask) {
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(kBytes, mask, bytes);
  uint64_t bits = 0;
  for (int i = 0; i < kByteLanes / 8; ++i) bits |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return bits;
}

HWY_INLINE hn::Vec<Bytes> broadcast(int32_t bytes) { return hn::BitCast(kBytes, hn::Set(kWords, bytes)); }

// E of one row, and the columns that the scalar model takes.
HWY_INLINE void settle_exponents(const Step& step, int64_t row, const hn::Vec<Bytes> (&largest)[kByteVectors]) {
  const ColumnTile& tile = step.scratch->tile;
  RowState& state = step.states[row];
  const int8_t low = step.low[row];
  uint64_t too_low = 0;
  uint64_t too_high = 0;
  for (int v = 0; v < kByteVectors; ++v) {
    const int j = v * kByteLanes;
    const auto products =
        hn::Min(hn::SaturatedAdd(largest[v], hn::Set(kBytes, step.base[row])), hn::Load(kBytes, tile.exponent_cap + j));
    const auto exponent = hn::Max(products, hn::Load(kBytes, state.exponent + j));
    hn::Store(exponent, kBytes, state.step_exponent + j);
    too_low |= mask_bits(hn::Lt(exponent, hn::Set(kBytes, low))) << j;
    too_high |= mask_bits(hn::Gt(exponent, hn::Set(kBytes, kHighestExponent))) << j;
  }
  const uint64_t exempt = low == kAllFlagged ? 0 : tile.zero_columns;
  state.flagged = ((too_low & ~exempt) | too_high | tile.special_columns) & step.valid_columns;
  if (HWY_UNLIKELY(state.flagged != 0)) resolve_flagged(step, row, state.flagged, kPositions.of);
}

// A negative product loses bits when the column's lowest bit is below this minus the row's.
HWY_INLINE hn::Vec<Bytes> lost_limit(const Step& step, int64_t row, int v) {
  const int threshold = step.base[row] + step.lost_threshold;
  const auto exponent = hn::Load(kBytes, step.states[row].step_exponent + v * kByteLanes);
  const auto relative = hn::SaturatedSub(exponent, hn::Set(kBytes, static_cast<int8_t>(threshold)));
  return hn::Min(relative, hn::Set(kBytes, 60));
}

// Exponents, flags and counts of lost bits of `Rows` rows.
template <int Rows>
void settle_bytes(const Step& step, int64_t row) {
  const ColumnTile& tile = step.scratch->tile;
  const RowGroup* const rows = step.rows + row;
  const char* const ahead = reinterpret_cast<const char*>(rows + Rows);
  for (size_t line = 0; line < Rows * sizeof(RowGroup); line += 64) __builtin_prefetch(ahead + line);
  hn::Vec<Bytes> work[Rows][kByteVectors];
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < kByteVectors; ++v) work[r][v] = hn::Set(kBytes, -128);
  }
  for (int i = 0; i < kGroup; ++i) {
    for (int r = 0; r < Rows; ++r) {
      const auto exponent = broadcast(rows[r].exponent[i]);
      for (int v = 0; v < kByteVectors; ++v) {
        const auto column = hn::Load(kBytes, &tile.exponent[i][v * kByteLanes]);
        work[r][v] = hn::Max(work[r][v], hn::Add(column, exponent));
      }
    }
  }
  hn::Vec<Bytes> limit[Rows][kByteVectors];
  for (int r = 0; r < Rows; ++r) {
    settle_exponents(step, row + r, work[r]);
    for (int v = 0; v < kByteVectors; ++v) {
      limit[r][v] = lost_limit(step, row + r, v);
      work[r][v] = hn::Zero(kBytes);
    }
  }
  for (int i = 0; i < kGroup; ++i) {
    for (int r = 0; r < Rows; ++r) {
      const int8_t* const table =
          reinterpret_cast<const int8_t*>(tile.lowest) + i * kTileColumns + rows[r].lost_table[i];
      const auto lowest = broadcast(rows[r].lowest[i]);
      for (int v = 0; v < kByteVectors; ++v) {
        const auto lost = hn::Gt(hn::Sub(limit[r][v], lowest), hn::Load(kBytes, table + v * kByteLanes));
        work[r][v] = hn::Sub(work[r][v], hn::VecFromMask(kBytes, lost));  // a true mask is -1
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < kByteVectors; ++v) hn::Store(work[r][v], kBytes, step.states[row + r].lost + v * kByteLanes);
  }
}

// M + lost units, for the even and the odd columns of 2 * kLanes.
HWY_INLINE void make_origins(const RowState& state, int column, hn::Vec<Doubles>* even, hn::Vec<Doubles>* odd) {
  const auto exponent = hn::PromoteTo(kWords, hn::Load(kWordBytes, state.step_exponent + column));
  const auto lost = hn::PromoteTo(kWords, hn::Load(kWordBytes, state.lost + column));
  const auto high = hn::Add(hn::ShiftLeft<20>(exponent), hn::Set(kWords, ((1023 + 27) << 20) | 0x80000));
  const auto high_of_even = hn::BitCast(kWords, hn::ShiftLeft<32>(hn::BitCast(kLongs, high)));
  const auto lost_of_odd = hn::BitCast(kWords, hn::ShiftRight<32>(hn::BitCast(kLongs, lost)));
  *even = hn::BitCast(kDoubles, hn::OddEven(high_of_even, lost));
  *odd = hn::BitCast(kDoubles, hn::OddEven(high, lost_of_odd));
}

// origin + chain, the chain truncated toward zero to the origin's unit.
HWY_INLINE hn::Vec<Doubles> start_sum(hn::Vec<Doubles> origin, const double* chain) {
  const auto c = hn::Load(kDoubles, chain);
  const auto size = hn::Sub(hn::Add(origin, hn::Abs(c)), origin);
  return hn::Add(origin, hn::CopySignToAbs(size, c));
}

// sum - M, cut to fp32. M has the sum's exponent field, and 1000... as its mantissa.
HWY_INLINE hn::Vec<Doubles> finish_sum(hn::Vec<Doubles> sum) {
  const auto field = hn::BitCast(kDoubles, hn::Set(kLongs, 0xFFF0000000000000u));
  const auto half = hn::BitCast(kDoubles, hn::Set(kLongs, 0x0008000000000000u));
  const auto kept = hn::BitCast(kDoubles, hn::Set(kLongs, ~((uint64_t{1} << 29) - 1)));
  return hn::And(hn::Sub(sum, hn::Or(hn::And(sum, field), half)), kept);
}

// The exponents of 2 * kLanes columns.
HWY_INLINE void store_exponents(hn::Vec<Doubles> even, hn::Vec<Doubles> odd, int8_t* to) {
  const auto high_of_even = hn::BitCast(kUnsigned, hn::ShiftRight<32>(hn::BitCast(kLongs, even)));
  const auto high = hn::OddEven(hn::BitCast(kUnsigned, odd), high_of_even);
  const auto field = hn::BitCast(kWords, hn::ShiftRight<21>(hn::ShiftLeft<1>(high)));
  hn::Store(hn::DemoteTo(kWordBytes, hn::Sub(field, hn::Set(kWords, 1023))), kWordBytes, to);
}

// `Rows` rows times 16 columns. Rounding is toward zero.
template <int Rows>
HWY_INLINE void multiply(const Step& step, int64_t row, int column) {
  constexpr int kVectors = 16 / kLanes;
  const ColumnTile& tile = step.scratch->tile;
  const RowGroup* const rows = step.rows + row;
  hn::Vec<Doubles> sums[Rows][kVectors];
  for (int r = 0; r < Rows; ++r) {
    RowState& state = step.states[row + r];
    for (int v = 0; v < kVectors; v += 2) {
      const int j = column + v * kLanes;
      hn::Vec<Doubles> even;
      hn::Vec<Doubles> odd;
      make_origins(state, j, &even, &odd);
      sums[r][v] = start_sum(even, state.value + j);
      sums[r][v + 1] = start_sum(odd, state.value + j + kLanes);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kGroup; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      const auto column_values = hn::Load(kDoubles, &tile.value[i][column + v * kLanes]);
      for (int r = 0; r < Rows; ++r) {
        sums[r][v] = hn::MulAdd(column_values, hn::Set(kDoubles, rows[r].value[i]), sums[r][v]);
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    RowState& state = step.states[row + r];
    for (int v = 0; v < kVectors; v += 2) {
      const int j = column + v * kLanes;
      const auto even = finish_sum(sums[r][v]);
      const auto odd = finish_sum(sums[r][v + 1]);
      hn::Store(even, kDoubles, state.value + j);
      hn::Store(odd, kDoubles, state.value + j + kLanes);
      store_exponents(even, odd, state.exponent + j);
    }
  }
}

HWY_NOINLINE void multiply_rows(const Step& step) {
  for (int64_t row = 0; row < step.row_count; row += 2) {
    for (int column = 0; column < kTileColumns; column += 16) multiply<2>(step, row, column);
  }
}

void run_step(const Step& step) {
  int64_t row = 0;
  for (; row + 4 <= step.row_count; row += 4) settle_bytes<4>(step, row);
  for (; row < step.row_count; row += 2) settle_bytes<2>(step, row);
  {
    const FloatEnvironment environment(Rounding::kTowardZero);
    multiply_rows(step);
  }
  for (row = 0; row < step.row_count; ++row) {
    const uint64_t flagged = step.states[row].flagged;
    if (HWY_UNLIKELY(flagged != 0)) apply_patches(step, row, flagged, kPositions.of);
  }
}

}  // namespace
}  // namespace portable

const Kernel* portable_kernel() {
  static constexpr Kernel kKernel = {portable::decode_tile, portable::run_step, portable::kPositions.of};
  return &kKernel;
}

}  // namespace isobit::cpu::mma
HWY_AFTER_NAMESPACE();
