// geglu on CUDA: one body, two schedules.
//
//   chunk (32 lanes x 16 bytes of the output)      row:  the warps of a block walk whole rows, chunk by chunk
//   gate ─ 16 B a lane ─┐                          tile: a block has one column tile of one row
//   up   ─ 16 B a lane ─┼─ fp32 ─ one rounding ─ out, or d_gate and d_up
//   d_out ──────────────┘
//
// Elements do not meet, so there is no shared memory and no barrier, and the schedule cannot show in the bits. Three
// ways lead through the same arithmetic (access.cuh): whole vectors, if every operand of the chunk starts on a 16-byte
// boundary; vectors put together, for any other alignment and for alternating tensors; elements, at the ends of a row.
// Forward loads go through the read-only path. Backward loads are plain, because d_gate and d_up may be written over
// gate and up: every element is read by the lane that writes it, before it does.
#pragma once

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

// ---- arithmetic -----------------------------------------------------------------------------------------------------

// The values as a tensor would hold them.
template <class Format>
__device__ __forceinline__ void round_values(float (&values)[Words<Format>::kElements]) {
  Words<Format>::unpack(Words<Format>::pack(values), values);
}

// The arithmetic of a lane's words. `zero` is 0. Where the compiler cannot know that, every word waits for the one
// before: without it ptxas computes all words at once, and to find the registers it puts loads behind half of the
// arithmetic or spills (CUDA 13.0, sm_90). A literal 0 lets the words go side by side.

// out goes to a.
template <class Format, Gelu kGelu, int kWords>
__device__ __forceinline__ void forward_words(uint32_t (&a)[kWords], const uint32_t (&b)[kWords], bool round_gelu,
                                              uint32_t zero) {
  constexpr int kElements = Words<Format>::kElements;
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
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
                                               const uint32_t (&d)[kWords], bool round_gelu, uint32_t zero) {
  constexpr int kElements = Words<Format>::kElements;
#pragma unroll
  for (int w = 0; w < kWords; ++w) {
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

// ---- one chunk of one row -------------------------------------------------------------------------------------------
//
// run() gets the column of the lane's vector. All lanes of a warp take the same way.

// Whether the warp takes the short way: every lane's vector is whole or, at the ends of a row, has no column at all.
template <class Format>
__device__ __forceinline__ bool all_whole(const Work& work, uint32_t row, int32_t column, uint32_t address_bits,
                                          bool* whole) {
  const bool aligned = address_bits % kVectorBytes == 0;
  *whole = static_cast<uint32_t>(column) < work.vector_starts && row < work.rows && aligned;
  if (__all_sync(0xFFFFFFFFu, *whole)) return true;
  const bool none = column >= work.columns || column <= -Layout<Format>::kLaneColumns;
  return __all_sync(0xFFFFFFFFu, *whole || (none && aligned && work.vector_starts != 0));
}

template <class Format>
__device__ __forceinline__ Chunk chunk_of(const Work& work, int32_t column) {
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32);
  return {column - lane * Layout<Format>::kLaneColumns, work.columns, lane};
}

template <class Format>
__device__ __forceinline__ bool inside(const Chunk& chunk) {
  return chunk.start >= 0 && chunk.start + Layout<Format>::kChunk <= chunk.columns;
}

template <class F, Gelu kGelu>
struct Forward {
  using Format = F;

  static __device__ __forceinline__ void run(const Work& work, uint32_t row, int32_t column) {
    const char* const gate = address_of<Format>(work.inputs.first, row, column, 1);
    const char* const up = address_of<Format>(work.inputs.second, row, column, 1);
    char* const out = address_of<Format>(work.out, row, column, 1);
    bool whole;
    if (all_whole<Format>(work, row, column, low_bits(gate) | low_bits(up) | low_bits(out), &whole)) {
      if (!whole) return;
      uint32_t a[4], b[4];
      device::load_words<true>(gate, a);
      device::load_words<true>(up, b);
      forward_words<Format, kGelu>(a, b, false, 0);
      device::store_words(out, a);
    } else if (row < work.rows) {
      const Chunk chunk = chunk_of<Format>(work, column);
      if (inside<Format>(chunk) && takes_vectors<Format>(work.inputs, row, column)) {
        run_vectors(work, row, column);
      } else if (chunk.start < chunk.columns) {
        run_elements(work, row, chunk);
      }
    }
  }

  static __device__ __forceinline__ void run_vectors(const Work& work, uint32_t row, int32_t column) {
    uint32_t raw[10], a[4], b[4];
    load_pair<Format, true>(work.inputs, row, column, raw);
    join_pair<Format>(work.inputs, row, column, raw, a, b);
    forward_words<Format, kGelu>(a, b, work.round_gelu, work.zero);
    store_anywhere<Format>(address_of<Format>(work.out, row, column, 1), a);
  }

  static __device__ __forceinline__ void run_elements(const Work& work, uint32_t row, const Chunk& chunk) {
    const Pair& in = work.inputs;
#pragma unroll 1
    for (int32_t q = 0; q < Layout<Format>::kLaneColumns / 4; ++q) {
      const Quad quad = {chunk, q};
      const uint32_t at = row + static_cast<uint32_t>(q) * work.zero;  // the row; keeps addresses out of registers
      uint32_t a[Layout<Format>::kQuadWords], b[Layout<Format>::kQuadWords];
      load_quad<Format, true>(in.first, at, quad, in.step, a);
      load_quad<Format, true>(in.second, at, quad, in.step, b);
      forward_words<Format, kGelu>(a, b, work.round_gelu, work.zero);
      store_quad<Format>(work.out, at, quad, 1, a);
    }
  }
};

template <class F, Gelu kGelu>
struct Backward {
  using Format = F;

  static __device__ __forceinline__ void run(const Work& work, uint32_t row, int32_t column) {
    const char* const gate = address_of<Format>(work.inputs.first, row, column, 1);
    const char* const up = address_of<Format>(work.inputs.second, row, column, 1);
    const char* const d_out = address_of<Format>(work.out, row, column, 1);
    char* const d_gate = address_of<Format>(work.gradients.first, row, column, 1);
    char* const d_up = address_of<Format>(work.gradients.second, row, column, 1);
    const uint32_t bits = low_bits(gate) | low_bits(up) | low_bits(d_out) | low_bits(d_gate) | low_bits(d_up);
    bool whole;
    if (all_whole<Format>(work, row, column, bits, &whole)) {
      if (!whole) return;
      uint32_t a[4], b[4], d[4];
      device::load_words<false>(gate, a);
      device::load_words<false>(up, b);
      device::load_words<false>(d_out, d);
      backward_words<Format, kGelu>(a, b, d, false, work.zero);
      device::store_words(d_gate, a);
      device::store_words(d_up, b);
    } else if (row < work.rows) {
      const Chunk chunk = chunk_of<Format>(work, column);
      if (inside<Format>(chunk) && takes_vectors<Format>(work.inputs, row, column) &&
          takes_vectors<Format>(work.gradients, row, column)) {
        run_vectors(work, row, column);
      } else if (chunk.start < chunk.columns) {
        run_elements(work, row, chunk);
      }
    }
  }

  static __device__ __forceinline__ void run_vectors(const Work& work, uint32_t row, int32_t column) {
    uint32_t raw[10], raw_d[5], a[4], b[4], d[4];
    const char* const d_out = address_of<Format>(work.out, row, column, 1);
    load_pair<Format, false>(work.inputs, row, column, raw);
    load_pieces<false>(d_out, raw_d);
    join_pair<Format>(work.inputs, row, column, raw, a, b);
    join_pieces(d_out, raw_d, d);
    backward_words<Format, kGelu>(a, b, d, work.round_gelu, work.zero);
    store_pair<Format>(work.gradients, row, column, a, b);
  }

  static __device__ __forceinline__ void run_elements(const Work& work, uint32_t row, const Chunk& chunk) {
    const Pair& in = work.inputs;
    const Pair& out = work.gradients;
#pragma unroll 1
    for (int32_t q = 0; q < Layout<Format>::kLaneColumns / 4; ++q) {
      const Quad quad = {chunk, q};
      const uint32_t at = row + static_cast<uint32_t>(q) * work.zero;  // the row; keeps addresses out of registers
      uint32_t a[Layout<Format>::kQuadWords], b[Layout<Format>::kQuadWords], d[Layout<Format>::kQuadWords];
      load_quad<Format, false>(in.first, at, quad, in.step, a);
      load_quad<Format, false>(in.second, at, quad, in.step, b);
      load_quad<Format, false>(work.out, at, quad, 1, d);
      backward_words<Format, kGelu>(a, b, d, work.round_gelu, work.zero);
      store_quad<Format>(out.first, at, quad, out.step, a);
      store_quad<Format>(out.second, at, quad, out.step, b);
    }
  }
};

// First column of the first chunk of a row: on a line, so 0 or before the row.
template <class Format>
__device__ __forceinline__ int32_t first_column(const Work& work, uint32_t row) {
  return -static_cast<int32_t>((work.lead + row * work.lead_step) % Layout<Format>::kLine);
}

// ---- schedules ------------------------------------------------------------------------------------------------------

// grid (tiles, rows, planes of rows); the tile is as wide as the block's warps.
template <class Direction>
__device__ __forceinline__ void walk_tile(const Work& work) {
  using Format = typename Direction::Format;
  const uint32_t row = blockIdx.z * kRowsPerPlane + blockIdx.y;
  const int32_t vector = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  Direction::run(work, row, vector * Layout<Format>::kLaneColumns + first_column<Format>(work, row));
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
