// Compiled twice, for AVX2 and for AVX-512; ISOBIT_PLAIN_GEMM is the function's name.
#include "cpu/bench/plain_gemm.h"

#include <hwy/highway.h>

namespace isobit::cpu::bench {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
constexpr Floats kFloats;
constexpr hn::Repartition<uint32_t, Floats> kWords;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(kFloats));
constexpr int kColumns = 64;
constexpr int kDepth = 64;          // elements of k per block
constexpr int kStrip = 4 * kLanes;  // columns whose sums are in registers at once

struct alignas(64) Tile {
  float value[kDepth][kColumns];
};

// 16 columns (uint16 rows) x 8 elements at a time, transposed by 8 x 8 of 16 bits.
HWY_INLINE void decode8(const uint16_t* columns, int64_t stride, float (*to)[kColumns]) {
  const hn::Full128<uint16_t> d16;
  const hn::Full128<uint32_t> d32;
  const hn::Full128<uint64_t> d64;
  const hn::Full128<float> df;
  hn::Vec<hn::Full128<uint16_t>> r[8];
  for (int c = 0; c < 8; ++c) r[c] = hn::LoadU(d16, columns + c * stride);
  hn::Vec<hn::Full128<uint32_t>> u[8];
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 2; ++i) {
      const auto interleave = [&](auto a, auto b) {
        return hn::BitCast(d32, half == 0 ? hn::InterleaveLower(d16, a, b) : hn::InterleaveUpper(d16, a, b));
      };
      const auto a = interleave(r[4 * i], r[4 * i + 1]);
      const auto b = interleave(r[4 * i + 2], r[4 * i + 3]);
      u[4 * half + 2 * i] = hn::InterleaveLower(d32, a, b);
      u[4 * half + 2 * i + 1] = hn::InterleaveUpper(d32, a, b);
    }
  }
  const auto zero = hn::Zero(d16);
  for (int e = 0; e < 8; ++e) {
    const auto a = hn::BitCast(d64, u[e / 4 * 4 + e / 2 % 2]);
    const auto b = hn::BitCast(d64, u[e / 4 * 4 + 2 + e / 2 % 2]);
    const auto x = hn::BitCast(d16, e % 2 == 0 ? hn::InterleaveLower(d64, a, b) : hn::InterleaveUpper(d64, a, b));
    hn::Store(hn::BitCast(df, hn::InterleaveLower(d16, zero, x)), df, to[e]);
    hn::Store(hn::BitCast(df, hn::InterleaveUpper(d16, zero, x)), df, to[e] + 4);
  }
}

template <int Rows>
HWY_INLINE void multiply(const float* rows, int64_t stride, const Tile& tile, int64_t depth, float* sums, int column) {
  hn::Vec<Floats> sum[Rows][4];
  for (int r = 0; r < Rows; ++r) {
    for (int i = 0; i < 4; ++i) sum[r][i] = hn::Load(kFloats, sums + r * kColumns + column + i * kLanes);
  }
  for (int64_t k = 0; k < depth; ++k) {
    hn::Vec<Floats> w[4];
    for (int i = 0; i < 4; ++i) w[i] = hn::Load(kFloats, &tile.value[k][column + i * kLanes]);
    for (int r = 0; r < Rows; ++r) {
      const auto x = hn::Set(kFloats, rows[r * stride + k]);
      for (int i = 0; i < 4; ++i) sum[r][i] = hn::MulAdd(w[i], x, sum[r][i]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int i = 0; i < 4; ++i) hn::Store(sum[r][i], kFloats, sums + r * kColumns + column + i * kLanes);
  }
}

// AVX-512 has registers for six rows of four vectors, AVX2 for two.
constexpr int kRows = kLanes == 16 ? 6 : 2;

void multiply_rows(const PlainProblem& p, const Tile& tile, int64_t first, int64_t depth) {
  for (int column = 0; column < kColumns; column += kStrip) {
    int64_t r = 0;
    for (; r + kRows <= p.n; r += kRows) {
      multiply<kRows>(p.decoded_rows + r * p.k + first, p.k, tile, depth, p.sums + r * kColumns, column);
    }
    for (; r + 2 <= p.n; r += 2) {
      multiply<2>(p.decoded_rows + r * p.k + first, p.k, tile, depth, p.sums + r * kColumns, column);
    }
    for (; r < p.n; ++r) {
      multiply<1>(p.decoded_rows + r * p.k + first, p.k, tile, depth, p.sums + r * kColumns, column);
    }
  }
}

}  // namespace

void ISOBIT_PLAIN_GEMM(const PlainProblem& p) {
  static thread_local Tile tile;
  for (int64_t i = 0; i < p.n * p.k; ++i) {
    p.decoded_rows[i] = __builtin_bit_cast(float, static_cast<uint32_t>(p.rows[i]) << 16);
  }
  for (int64_t j = 0; j < p.v; j += kColumns) {
    for (int64_t i = 0; i < p.n * kColumns; ++i) p.sums[i] = 0.0f;
    for (int64_t first = 0; first < p.k; first += kDepth) {
      const int64_t depth = p.k - first < kDepth ? p.k - first : kDepth;
      for (int c = 0; c < kColumns; ++c) {
        __builtin_prefetch(p.columns + (j + c) * p.k + first + kDepth, 0, 2);
        __builtin_prefetch(p.columns + (j + c) * p.k + first + kDepth + 32, 0, 2);
      }
      for (int c = 0; c < kColumns; c += 8) {
        for (int64_t e = 0; e < depth; e += 8) {
          decode8(p.columns + (j + c) * p.k + first + e, p.k, reinterpret_cast<float(*)[kColumns]>(&tile.value[e][c]));
        }
      }
      multiply_rows(p, tile, first, depth);
    }
    for (int64_t r = 0; r < p.n; ++r) {
      for (int c = 0; c < kColumns; ++c) p.result[r * p.v + j + c] = p.sums[r * kColumns + c];
    }
  }
}

}  // namespace isobit::cpu::bench
