// geglu on CUDA: one body, two schedules.
//
//   chunk (32 lanes x 16 bytes of the output)      row:  the warps of a block walk whole rows, chunk by chunk
//   gate ─ 16 B a lane ─┐                          tile: a block has one column tile of one row
//   up   ─ 16 B a lane ─┼─ fp32 ─ one rounding ─ out, or d_gate and d_up
//   d_out ──────────────┘
//
// Elements do not meet, so there is no shared memory and no barrier, and the schedule cannot show in the bits. Four
// ways lead through the same arithmetic (access.cuh), and the plan says which (Way, config.h): vectors; couples, for
// tensors that alternate; words, for operands that are not aligned alike; what exists, at the ends of a row.
// Forward loads go through the read-only path. Backward loads are plain, because d_gate and d_up may be written over
// gate and up: every element is read by the lane that writes it, before it does.
#pragma once

#include "device/ptx/prefetch.cuh"
#include "ops/geglu/cuda/access.cuh"
#include "ops/geglu/element.h"

namespace isobit::geglu::cuda {

using numerics::Gelu;

// Blocks of 32 kMaxWarps threads that fill a multiprocessor: of 1,536 threads on 8.6, 8.9, 11.0 and 12.x, else of
// 2,048.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1100)
inline constexpr int kFullBlocks = 6;
#else
inline constexpr int kFullBlocks = 8;
#endif

// How far ahead of its own vectors a backward pass over one row asks for lines in L2: what all multiprocessors of an
// H200 hold at a time, 132 x 12 blocks of 128 threads. Calls that take 15 to 45 us there lose 1.2 to 1.9 % without it,
// the same at half the distance, longer calls nothing; asked for before the arithmetic instead of after it, the lines
// cost 4 to 6 % (2026-11-30). 0 where it was not measured.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
inline constexpr int32_t kAheadBytes = 132 * 12 * 128 * kVectorBytes;
#else
inline constexpr int32_t kAheadBytes = 0;
#endif

// ---- arithmetic -----------------------------------------------------------------------------------------------------

// The values as a tensor would hold them.
template <class Format>
__device__ __forceinline__ void round_values(float (&values)[Words<Format>::kElements]) {
  Words<Format>::unpack(Words<Format>::pack(values), values);
}

// The arithmetic of a lane's words. `zero` is 0. Where the compiler cannot know that, every word waits for the one
// before: without it ptxas computes all words at once, and to find the registers it puts loads behind half of the
// arithmetic or spills (CUDA 13.0, sm_90). A literal 0 lets the words go side by side. Only the first `count` words are
// wanted.

// out goes to a.
template <class Format, Gelu kGelu, int kWords>
__device__ __forceinline__ void forward_words(uint32_t (&a)[kWords], const uint32_t (&b)[kWords], bool round_gelu,
                                              uint32_t zero, int count = kWords) {
  constexpr int kElements = Words<Format>::kElements;
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    if (w >= count) break;
    float x[kElements], y[kElements];
    Words<Format>::unpack(a[w], x);
    Words<Format>::unpack(b[w], y);
#pragma unroll
    for (int e = 0; e < kElements; ++e) x[e] = forward_gelu<Format, kGelu>(x[e]);
    if (round_gelu) round_values<Format>(x);
#pragma unroll
    for (int e = 0; e < kElements; ++e) x[e] = out_of(x[e], y[e]);
    a[w] = Words<Format>::pack(x);
    if (w + 1 < kWords) a[w + 1] ^= a[w] & zero;
  }
}

// d_gate goes to a and d_up to b.
template <class Format, Gelu kGelu, int kWords>
__device__ __forceinline__ void backward_words(uint32_t (&a)[kWords], uint32_t (&b)[kWords],
                                               const uint32_t (&d)[kWords], bool round_gelu, uint32_t zero,
                                               int count = kWords) {
  constexpr int kElements = Words<Format>::kElements;
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
    if (w >= count) break;
    float x[kElements], y[kElements], z[kElements];
    Words<Format>::unpack(a[w], x);
    Words<Format>::unpack(b[w], y);
    Words<Format>::unpack(d[w], z);
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      const numerics::GeluAndSlope gelu = backward_gelu<Format, kGelu>(x[e]);
      y[e] = d_gate_of(z[e], y[e], gelu.slope);
      x[e] = gelu.value;
    }
    if (round_gelu) round_values<Format>(x);
#pragma unroll
    for (int e = 0; e < kElements; ++e) x[e] = d_up_of(z[e], x[e]);
    a[w] = Words<Format>::pack(y);
    b[w] = Words<Format>::pack(x);
    if (w + 1 < kWords) a[w + 1] ^= a[w] & zero;
  }
}

// The same on couples. out goes to `out`.
template <class Format, Gelu kGelu, bool kRound>
__device__ __forceinline__ void forward_couples(uint32_t (&in)[8], bool swapped, uint32_t (&out)[4], uint32_t zero) {
  constexpr int kElements = Words<Format>::kElements;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    float x[kElements], y[kElements];
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      device::unpack_couple<Format>(in + 2 * w + e, swapped, x[e], y[e]);
      x[e] = forward_gelu<Format, kGelu>(x[e]);
    }
    if constexpr (kRound) round_values<Format>(x);
#pragma unroll
    for (int e = 0; e < kElements; ++e) x[e] = out_of(x[e], y[e]);
    out[w] = Words<Format>::pack(x);
    if (w < 3) in[2 * w + 2] ^= out[w] & zero;
  }
}

// d_gate and d_up take the places of gate and up.
template <class Format, Gelu kGelu, bool kRound>
__device__ __forceinline__ void backward_couples(uint32_t (&couples)[8], const uint32_t (&d)[4], const Work& work) {
  constexpr int kElements = Words<Format>::kElements;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    float x[kElements], y[kElements], z[kElements];
    Words<Format>::unpack(d[w], z);
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      device::unpack_couple<Format>(couples + 2 * w + e, work.inputs.swapped, x[e], y[e]);
      const numerics::GeluAndSlope gelu = backward_gelu<Format, kGelu>(x[e]);
      y[e] = d_gate_of(z[e], y[e], gelu.slope);
      x[e] = gelu.value;
    }
    if constexpr (kRound) round_values<Format>(x);
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      device::pack_couple<Format>(y[e], d_up_of(z[e], x[e]), work.gradients.swapped, couples + 2 * w + e);
    }
    if (w < 3) couples[2 * w + 2] ^= couples[2 * w] & work.zero;
  }
}

// ---- one chunk of one row -------------------------------------------------------------------------------------------
//
// run() gets the column of the lane's vector. All lanes of a warp take the same way.

template <class Format>
__device__ __forceinline__ Chunk chunk_of(const Work& work, int32_t column) {
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32);
  return {column - lane * Layout<Format>::kLaneColumns, work.columns, lane};
}

// Whether the lane's vector lies in the row.
__device__ __forceinline__ bool is_whole(const Work& work, int32_t column) {
  return static_cast<uint32_t>(column) < work.vector_starts;
}

// Whether a lane of the warp has a part of a vector: if none has, a lane's vector is whole or has no column at all.
template <class Format>
__device__ __forceinline__ bool has_parts(const Work& work, int32_t column) {
  const bool whole = is_whole(work, column);
  if (__all_sync(0xFFFFFFFFu, whole)) return false;
  const bool none = column >= work.columns || column <= -Layout<Format>::kLaneColumns;
  return !__all_sync(0xFFFFFFFFu, whole || none);
}

template <class Format>
__device__ __forceinline__ bool inside(const Chunk& chunk) {
  return chunk.start >= 0 && chunk.start + Layout<Format>::kChunk <= chunk.columns;
}

template <class F, Gelu kGelu>
struct Forward {
  using Format = F;

  static __device__ __forceinline__ void run(const Work& work, uint32_t row, int32_t column) {
    const Chunk chunk = chunk_of<Format>(work, column);
    if (work.way == Way::kWords) {
      if (chunk.start >= chunk.columns) return;
      if (!inside<Format>(chunk)) return run_end<1>(work, row, chunk);
      return work.round_gelu ? run_words<true>(work, row, chunk) : run_words<false>(work, row, chunk);
    }
    if (has_parts<Format>(work, column)) {
      return work.way == Way::kCouples ? run_end<0>(work, row, chunk) : run_end<1>(work, row, chunk);
    }
    if (!is_whole(work, column)) return;
    if (work.way != Way::kCouples) return run_vectors<false>(work, row, column);
    return work.round_gelu ? run_couples<true>(work, row, column) : run_couples<false>(work, row, column);
  }

  template <bool kOneRow>
  static __device__ __forceinline__ void run_vectors(const Work& work, uint32_t row, int32_t column) {
    uint32_t a[4], b[4];
    if (kOneRow) row = 0;
    device::load_words<true>(address_of<Format>(work.inputs.first, row, column, 1), a);
    device::load_words<true>(address_of<Format>(work.inputs.second, row, column, 1), b);
    forward_words<Format, kGelu>(a, b, false, kOneRow ? 0 : work.zero);
    device::store_words(address_of<Format>(work.out, row, column, 1), a);
  }

  template <bool kRound>
  static __device__ __forceinline__ void run_couples(const Work& work, uint32_t row, int32_t column) {
    uint32_t in[8], out[4];
    device::load_words<true>(couples_at<Format>(work.inputs, row, column), in);
    forward_couples<Format, kGelu, kRound>(in, work.inputs.swapped, out, kRound ? work.zero : 0);
    device::store_words(address_of<Format>(work.out, row, column, 1), out);
  }

  template <bool kRound>
  static __device__ __forceinline__ void run_words(const Work& work, uint32_t row, const Chunk& chunk) {
    uint32_t raw_a[8], raw_b[8], a[4], b[4];
    const Spread gate = spread_of<Format>(work, work.inputs.first, 0, row, chunk);
    const Spread up = spread_of<Format>(work, work.inputs.second, 1, row, chunk);
    load_spread<Format, true>(gate, raw_a);
    load_spread<Format, true>(up, raw_b);
    join_spread<Format>(gate, raw_a, a);
    join_spread<Format>(up, raw_b, b);
    forward_words<Format, kGelu>(a, b, kRound, work.zero);
    store_spread<Format>(spread_of<Format>(work, work.out, 2, row, chunk), a);
  }

  template <int kStep>
  static __device__ __forceinline__ void run_end(const Work& work, uint32_t row, const Chunk& chunk) {
    const Pair& in = work.inputs;
    uint32_t a[4], b[4];
    load_existing<Format, kStep, true>(in.first, row, chunk, in.step, a);
    load_existing<Format, kStep, true>(in.second, row, chunk, in.step, b);
    forward_words<Format, kGelu>(a, b, work.round_gelu, work.zero, existing_words<Format>(chunk));
    store_existing<Format, 1>(work.out, row, chunk, 1, a);
  }
};

template <class F, Gelu kGelu>
struct Backward {
  using Format = F;

  static __device__ __forceinline__ void run(const Work& work, uint32_t row, int32_t column) {
    const Chunk chunk = chunk_of<Format>(work, column);
    if (work.way == Way::kWords) {
      if (chunk.start >= chunk.columns) return;
      if (!inside<Format>(chunk)) return run_end<1>(work, row, chunk);
      return work.round_gelu ? run_words<true>(work, row, chunk) : run_words<false>(work, row, chunk);
    }
    if (has_parts<Format>(work, column)) {
      return work.way == Way::kCouples ? run_end<0>(work, row, chunk) : run_end<1>(work, row, chunk);
    }
    if (!is_whole(work, column)) return;
    if (work.way != Way::kCouples) return run_vectors<false>(work, row, column);
    return work.round_gelu ? run_couples<true>(work, row, column) : run_couples<false>(work, row, column);
  }

  template <bool kOneRow>
  static __device__ __forceinline__ void run_vectors(const Work& work, uint32_t row, int32_t column) {
    uint32_t a[4], b[4], d[4];
    if (kOneRow) row = 0;
    device::load_words<false>(address_of<Format>(work.inputs.first, row, column, 1), a);
    device::load_words<false>(address_of<Format>(work.inputs.second, row, column, 1), b);
    device::load_words<false>(address_of<Format>(work.out, row, column, 1), d);
    backward_words<Format, kGelu>(a, b, d, false, work.zero);
    if constexpr (kOneRow && kAheadBytes > 0) prefetch_ahead(work, column + kAheadBytes / Layout<Format>::kSize);
    device::store_words(address_of<Format>(work.gradients.first, row, column, 1), a);
    device::store_words(address_of<Format>(work.gradients.second, row, column, 1), b);
  }

  // One lane a line.
  static __device__ __forceinline__ void prefetch_ahead(const Work& work, int32_t column) {
    if (threadIdx.x % (kLineBytes / kVectorBytes) != 0 || !is_whole(work, column)) return;
    device::ptx::prefetch_l2(address_of<Format>(work.inputs.first, 0, column, 1));
    device::ptx::prefetch_l2(address_of<Format>(work.inputs.second, 0, column, 1));
    device::ptx::prefetch_l2(address_of<Format>(work.out, 0, column, 1));
  }

  template <bool kRound>
  static __device__ __forceinline__ void run_couples(const Work& work, uint32_t row, int32_t column) {
    uint32_t couples[8], d[4];
    device::load_words<false>(address_of<Format>(work.out, row, column, 1), d);
    load_couples<Format, false>(work.inputs, row, column, couples);
    backward_couples<Format, kGelu, kRound>(couples, d, work);
    store_couples<Format>(work.gradients, row, column, couples);
  }

  template <bool kRound>
  static __device__ __forceinline__ void run_words(const Work& work, uint32_t row, const Chunk& chunk) {
    uint32_t raw_a[8], raw_b[8], raw_d[8], a[4], b[4], d[4];
    const Spread gate = spread_of<Format>(work, work.inputs.first, 0, row, chunk);
    const Spread up = spread_of<Format>(work, work.inputs.second, 1, row, chunk);
    const Spread d_out = spread_of<Format>(work, work.out, 2, row, chunk);
    load_spread<Format, false>(gate, raw_a);
    load_spread<Format, false>(up, raw_b);
    load_spread<Format, false>(d_out, raw_d);
    join_spread<Format>(gate, raw_a, a);
    join_spread<Format>(up, raw_b, b);
    join_spread<Format>(d_out, raw_d, d);
    backward_words<Format, kGelu>(a, b, d, kRound, work.zero);
    store_spread<Format>(spread_of<Format>(work, work.gradients.first, 3, row, chunk), a);
    store_spread<Format>(spread_of<Format>(work, work.gradients.second, 4, row, chunk), b);
  }

  template <int kStep>
  static __device__ __forceinline__ void run_end(const Work& work, uint32_t row, const Chunk& chunk) {
    const Pair& in = work.inputs;
    const Pair& out = work.gradients;
    uint32_t a[4], b[4], d[4];
    load_existing<Format, kStep, false>(in.first, row, chunk, in.step, a);
    load_existing<Format, kStep, false>(in.second, row, chunk, in.step, b);
    load_existing<Format, 1, false>(work.out, row, chunk, 1, d);
    backward_words<Format, kGelu>(a, b, d, work.round_gelu, work.zero, existing_words<Format>(chunk));
    store_existing<Format, kStep>(out.first, row, chunk, out.step, a);
    store_existing<Format, kStep>(out.second, row, chunk, out.step, b);
  }
};

// First column of the first chunk of a row: on a line, so 0 or before the row.
template <class Format>
__device__ __forceinline__ int32_t first_column(const Work& work, uint32_t row) {
  return -static_cast<int32_t>((work.lead + row * work.lead_step) % Layout<Format>::kLine);
}

// ---- schedules ------------------------------------------------------------------------------------------------------

// A chunk of tensors that are one row: what is known of them spares a sixth of the instructions.
template <class Direction>
__device__ __forceinline__ void walk_one_row(const Work& work, int32_t column) {
  using Format = typename Direction::Format;
  if (has_parts<Format>(work, column)) {
    return Direction::template run_end<1>(work, 0, chunk_of<Format>(work, column));
  }
  if (is_whole(work, column)) Direction::template run_vectors<true>(work, 0, column);
}

// grid (tiles, rows, planes of rows); the tile is as wide as the block's warps.
template <class Direction>
__device__ __forceinline__ void walk_tile(const Work& work) {
  using Format = typename Direction::Format;
  const auto column = static_cast<int32_t>((blockIdx.x * blockDim.x + threadIdx.x) * Layout<Format>::kLaneColumns);
  if (work.way == Way::kOneRow) return walk_one_row<Direction>(work, column - static_cast<int32_t>(work.lead));
  const uint32_t row = blockIdx.z * kRowsPerPlane + blockIdx.y;
  if (row >= work.rows) return;
  Direction::run(work, row, column + first_column<Format>(work, row));
}

// grid (groups of rows, column spans): warps_per_row neighbouring warps share a row and walk `span` of its columns.
template <class Direction>
__device__ __forceinline__ void walk_rows(const Work& work, uint32_t warps_per_row, int32_t span) {
  using Format = typename Direction::Format;
  constexpr int32_t kLaneColumns = Layout<Format>::kLaneColumns;
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t row = blockIdx.x * (blockDim.x / 32 / warps_per_row) + warp / warps_per_row;
  if (row >= work.rows) return;
  const int32_t begin = first_column<Format>(work, row) + static_cast<int32_t>(blockIdx.y) * span;
  const int32_t end = min(begin + span, work.columns);
  const int32_t lane = static_cast<int32_t>(threadIdx.x % (warps_per_row * 32));
  // The condition is the same for a whole warp: it asks for the warp's first column.
  for (int32_t column = begin + lane * kLaneColumns; column - lane % 32 * kLaneColumns < end;
       column += static_cast<int32_t>(warps_per_row) * Layout<Format>::kChunk) {
    Direction::run(work, row, column);
  }
}

template <class Format, Gelu kGelu>
__global__ void __launch_bounds__(32 * kMaxWarps, kFullBlocks) geglu_forward_tile(const __grid_constant__ Work work) {
  walk_tile<Forward<Format, kGelu>>(work);
}

template <class Format, Gelu kGelu>
__global__ void __launch_bounds__(32 * kMaxWarps, 6) geglu_backward_tile(const __grid_constant__ Work work) {
  walk_tile<Backward<Format, kGelu>>(work);
}

template <class Format, Gelu kGelu>
__global__ void __launch_bounds__(32 * kMaxWarps, 4)
    geglu_forward_row(const __grid_constant__ Work work, uint32_t warps_per_row, int32_t span) {
  walk_rows<Forward<Format, kGelu>>(work, warps_per_row, span);
}

template <class Format, Gelu kGelu>
__global__ void __launch_bounds__(32 * kMaxWarps, 3)
    geglu_backward_row(const __grid_constant__ Work work, uint32_t warps_per_row, int32_t span) {
  walk_rows<Backward<Format, kGelu>>(work, warps_per_row, span);
}

}  // namespace isobit::geglu::cuda
