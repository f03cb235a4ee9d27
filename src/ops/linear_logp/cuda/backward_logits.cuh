// From a tile of dot products to dz: the sink of Product::kLogits. Two paths with the same bits, as in
// cuda/fragment.cuh: straight-line code where the call has no options, the tile no borders and the warp no large logit,
// else a rolled loop. Targets are few and come last: who stored a target's dz as that of another id stores it again.
#pragma once

#include "ops/linear_logp/cuda/backward_row.cuh"
#include "ops/linear_logp/cuda/backward_sums.cuh"
#include "ops/linear_logp/cuda/fragment.cuh"

namespace isobit::linear_logp::cuda {

// gradient_of_logit for |z| <= kPlainLimit; c is NaN where the row's dz are.
template <bool kEntropy>
__device__ __forceinline__ float plain_gradient(const GradientRow& g, float c, float z) {
  const float shifted = numerics::fma_rn(z, numerics::kLog2EHi, numerics::kRoundingShift);
  const float n = numerics::sub_rn(shifted, numerics::kRoundingShift);
  const float f = numerics::fma_rn(z, numerics::kLog2ELo, numerics::fma_rn(z, numerics::kLog2EHi, -n));
  // The rounding shift leaves n in the low bits.
  const int32_t d = static_cast<int32_t>(numerics::float_bits(shifted)) -
                    (static_cast<int32_t>(numerics::float_bits(numerics::kRoundingShift)) + g.r);
  const uint32_t bits = numerics::float_bits(numerics::exp2_polynomial(f)) + (static_cast<uint32_t>(d) << 23);
  const float term = d < kSmallestTerm ? 0.0f : numerics::bits_float(bits);
  if constexpr (!kEntropy) return numerics::mul_rn(term, c);
  const float log_p = numerics::fma_rn(numerics::add_rn(static_cast<float>(d), f), kLn2, g.b);
  return numerics::mul_rn(term, numerics::fma_rn(-g.h, log_p, c));
}

// Far below every plain logit, within what plain_gradient can reduce.
constexpr float kNoLogit = -1000.0f;

template <class Fragment, int kColumns, bool kEntropy>
struct LogitsSink {
  static constexpr int kAccumulators = kColumns / 2;
  static constexpr int kBlockGroups = kDzColumns / 8;  // of eight columns, in a block of dz
  static_assert(kColumns % kDzColumns == 0 && kTileRows == kRowPadding, "a tile is whole blocks of dz");
  using Sums = float[2][kAccumulators];

  const BackwardJob& job;
  int32_t rows;  // valid rows of the chunk
  float* words;

  __device__ __forceinline__ LogitsSink(const BackwardJob& of, int32_t rows_here, float* columns)
      : job(of), rows(rows_here), words(columns) {}

  static __device__ __forceinline__ bool has_addend() { return false; }

  __device__ __forceinline__ void finish(const Unit& unit, Sums& d) const {
    const bool whole = unit.column + kColumns <= job.ids_of(unit.slice);
    // Where masking costs registers that are not there, border tiles go the long way.
    const bool fits = whole || Fragment::kMasksBorders;
    if (__all_sync(kWarp, fits && has_plain_logits(job.p.forward) && all_plain(d[0]) && all_plain(d[1]))) {
      if constexpr (Fragment::kMasksBorders) {
        if (!whole) mask(unit, d);
      }
      store_plain(unit, d);
    } else {
      store_any(unit, d);
    }
    for (int64_t k = 0; k < job.p.forward.targets; ++k) keep_target(unit, d, k);
  }

 private:
  __device__ __forceinline__ uint16_t* place(const Unit& unit, int32_t row, int32_t column) const {
    return job.dz_at(row, unit.slice, column);
  }
  __device__ __forceinline__ GradientRow gradient(int32_t row) const {
    return job.gradient[job.first_row + (row < rows ? row : 0)];
  }
  // Global id of a column.
  __device__ __forceinline__ int64_t id(const Unit& unit, int32_t column) const {
    return job.p.forward.first_id + job.first_id + int64_t{unit.slice} * job.slice_ids + column;
  }

  // Columns that are no ids get a logit whose term is 0 in any row of plain logits: a tile at a border is then like
  // others.
  __device__ __forceinline__ void mask(const Unit& unit, Sums& d) const {
    const int32_t left = job.ids_of(unit.slice) - unit.column - 2 * static_cast<int>(threadIdx.x % 4);
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) {
      if (8 * (i / 4) + i % 2 < left) continue;
      d[0][i] = kNoLogit;
      d[1][i] = kNoLogit;
    }
  }

  // Columns beyond the slice, whole blocks, are the next one's.
  __device__ __forceinline__ void store_plain(const Unit& unit, Sums& d) const {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int32_t row = first_row_of<Fragment>(unit) + Fragment::kBlockRows * m + 8 * h;
        const GradientRow g = gradient(row);
        const float c = g.nan ? numerics::bits_float(numerics::kNanBits) : g.c;
        uint16_t* const to = place(unit, row, unit.column) + quad_column();
#pragma unroll
        for (int j = 0; j < kAccumulators / 4; j += 2) {
          uint32_t word[2];
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float pair[2] = {plain_gradient<kEntropy>(g, c, d[m][4 * (j + i) + 2 * h]),
                                   plain_gradient<kEntropy>(g, c, d[m][4 * (j + i) + 2 * h + 1])};
            word[i] = row < rows ? device::Words<numerics::Bf16>::pack(pair) : 0;
          }
          const uint2 words = exchange_words(word[0], word[1]);
          if (unit.column + 8 * j >= job.slice_pitch) continue;
          *reinterpret_cast<uint2*>(to + j / kBlockGroups * kDzBlock + j % kBlockGroups * 8) = words;
        }
      }
    }
  }

  __device__ __forceinline__ void store_any(const Unit& unit, Sums& d) const {
    const Params& p = job.p.forward;
    const int32_t ids = job.ids_of(unit.slice);
    for_each_element<Fragment, false>(
        unit, d, unit.row + kTileRows, job.slice_pitch, words, [&](int32_t row, int32_t column, float t) {
          if (column >= job.slice_pitch) return;
          uint16_t value = 0;
          if (row < rows && column < ids) {
            const int64_t call_row = job.row_of[job.first_row + row];
            value = dot_gradient<kEntropy>(p, gradient(row), t, id(unit, column), temperature_at(p, call_row));
          }
          *place(unit, row, column) = value;
        });
  }

  // The dot products of target k of the tile's rows go to the workspace, where they are among the tile's ids.
  __device__ __forceinline__ void keep_target(const Unit& unit, Sums& d, int64_t k) const {
    // Those of the slice: the next one's tile has the others.
    const int32_t left = job.ids_of(unit.slice) - unit.column;
    const int32_t columns = left < kColumns ? left : kColumns;
    const int q = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int32_t row = first_row_of<Fragment>(unit) + Fragment::kBlockRows * (i / 2) + 8 * (i % 2);
      const int64_t number = job.first_row + row;
      const int64_t offset = row < rows ? target_at(job.p.forward, job.row_of[number], k) - id(unit, unit.column) : -1;
      const bool here = offset >= 0 && offset < columns && (offset & 7) >> 1 == q;
      // About one tile in forty holds a target of a given warp.
      if (!__any_sync(kWarp, here)) continue;
      float t = 0.0f;
#pragma unroll
      for (int j = 0; j < kAccumulators / 4; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) t = offset == 8 * j + 2 * q + e ? d[i / 2][4 * j + 2 * (i % 2) + e] : t;
      }
      if (here) job.target_dot[number * job.p.forward.targets + k] = t;
    }
  }
};

}  // namespace isobit::linear_logp::cuda
