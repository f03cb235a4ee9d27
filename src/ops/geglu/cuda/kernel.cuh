// geglu on CUDA: one body, two schedules.
//
//   chunk (32 lanes x 16 bytes of the output)      row:  the warps of a block walk whole rows, chunk by chunk
//   gate ─ 16 B a lane ─┐                          tile: a block has one column tile of one row
//   up   ─ 16 B a lane ─┼─ fp32 ─ one rounding ─ out, or d_gate and d_up
//   d_out ──────────────┘
//
// Elements do not meet, so there is no shared memory and no barrier, and the schedule cannot show in the bits. A chunk
// that lies inside the row and starts on a 16-byte boundary in every operand takes whole vectors; any other chunk is
// gathered element by element, 32 neighbours at a time, and runs through the same arithmetic.
// Forward loads go through the read-only path. Backward loads are plain, because d_gate and d_up may be written over
// gate and up: every element is read by the lane that writes it, before it does.
#pragma once

#include "device/elements.cuh"
#include "ops/geglu/cuda/config.h"
#include "ops/geglu/element.h"

namespace isobit::geglu::cuda {

using device::Words;
using numerics::Gelu;

// Blocks of 32 kMaxWarps threads that fill a multiprocessor: of 1,536 threads on 8.6, 8.9, 11.0 and 12.x, else of
// 2,048.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1100)
inline constexpr int kFullBlocks = 6;
#else
inline constexpr int kFullBlocks = 8;
#endif

// ---- operands --------------------------------------------------------------------------------------------------

template <class Format>
struct Layout {
  using Element = typename Words<Format>::Element;
  static constexpr int kSize = sizeof(Element);
  static constexpr int kLaneColumns = kVectorBytes / kSize;
  static constexpr int kChunk = 32 * kLaneColumns;
  static constexpr uint32_t kLine = kLineBytes / kSize;
  static constexpr int kQuadWords = 4 / Words<Format>::kElements;
};

// A chunk of a row: columns [start, start + kChunk), of which those in [0, columns) exist.
struct Chunk {
  int32_t start;
  int32_t columns;
  int32_t lane;
};

// Address of (row, column) of an operand with `step` elements from column to column.
template <class Format>
__device__ __forceinline__ char* address_of(const Operand& operand, uint32_t row, int32_t column, int32_t step) {
  return operand.data + static_cast<uint64_t>(row) * operand.row_bytes +
         static_cast<int64_t>(column) * (Layout<Format>::kSize * step);
}

__device__ __forceinline__ uint32_t low_bits(const char* pointer) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer));
}

// Four columns of a lane. As vectors they are neighbours, start + 128 q + 4 lane + (0..3); as elements they lie a warp
// apart, so that the warp's accesses are neighbours: start + 32 (4 q + (0..3)) + lane.
struct Quad {
  Chunk chunk;
  int32_t q;
  bool vectors;
  __device__ __forceinline__ int32_t column(int i) const {
    return vectors ? chunk.start + 128 * q + 4 * chunk.lane + i : chunk.start + 32 * (4 * q + i) + chunk.lane;
  }
  __device__ __forceinline__ bool exists(int i) const {
    return static_cast<uint32_t>(column(i)) < static_cast<uint32_t>(chunk.columns);
  }
};

template <class Format, bool kReadOnly>
__device__ __forceinline__ void load_elements(const char* first, int32_t stride, const Quad& quad,
                                              uint32_t (&words)[Layout<Format>::kQuadWords]) {
  using Element = typename Layout<Format>::Element;
  constexpr int kElements = Words<Format>::kElements;
#pragma unroll
  for (int w = 0; w < Layout<Format>::kQuadWords; ++w) {
    Element x[kElements] = {};
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      const int i = w * kElements + e;
      const auto* from = reinterpret_cast<const Element*>(first + i * stride);
      if (quad.exists(i)) x[e] = kReadOnly ? __ldg(from) : *from;
    }
    words[w] = Words<Format>::join(x);
  }
}

template <class Format>
__device__ __forceinline__ void store_elements(char* first, int32_t stride, const Quad& quad,
                                               const uint32_t (&words)[Layout<Format>::kQuadWords]) {
  using Element = typename Layout<Format>::Element;
  constexpr int kElements = Words<Format>::kElements;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (quad.exists(i))
      *reinterpret_cast<Element*>(first + i * stride) = Words<Format>::element(words[i / kElements], i % kElements);
  }
}

// An operand of step 1: out or d_out.
template <class Format, bool kReadOnly>
__device__ __forceinline__ void load_quad(const Operand& operand, uint32_t row, const Quad& quad,
                                          uint32_t (&words)[Layout<Format>::kQuadWords]) {
  const char* const from = address_of<Format>(operand, row, quad.column(0), 1);
  if (quad.vectors) {
    device::load_words<kReadOnly>(from, words);
  } else {
    load_elements<Format, kReadOnly>(from, 32 * Layout<Format>::kSize, quad, words);
  }
}

template <class Format>
__device__ __forceinline__ void store_quad(const Operand& operand, uint32_t row, const Quad& quad,
                                           const uint32_t (&words)[Layout<Format>::kQuadWords]) {
  char* const to = address_of<Format>(operand, row, quad.column(0), 1);
  if (quad.vectors) {
    device::store_words(to, words);
  } else {
    store_elements<Format>(to, 32 * Layout<Format>::kSize, quad, words);
  }
}

// A pair of any step.
template <class Format, bool kReadOnly>
__device__ __forceinline__ void load_quad(const Pair& pair, uint32_t row, const Quad& quad,
                                          uint32_t (&a)[Layout<Format>::kQuadWords],
                                          uint32_t (&b)[Layout<Format>::kQuadWords]) {
  constexpr int kWords = Layout<Format>::kQuadWords;
  const char* const first = address_of<Format>(pair.first, row, quad.column(0), pair.step);
  const char* const second = address_of<Format>(pair.second, row, quad.column(0), pair.step);
  if (!quad.vectors) {
    const int32_t stride = 32 * Layout<Format>::kSize * pair.step;
    load_elements<Format, kReadOnly>(first + pair.first_shift, stride, quad, a);
    load_elements<Format, kReadOnly>(second + pair.second_shift, stride, quad, b);
  } else if (pair.step == 1) {
    device::load_words<kReadOnly>(first, a);
    device::load_words<kReadOnly>(second, b);
  } else {
    uint32_t couples[2 * kWords];
    device::load_words<kReadOnly>(first, couples);
    device::split_couples<Format>(couples, pair.first_shift != 0, a, b);
  }
}

template <class Format>
__device__ __forceinline__ void store_quad(const Pair& pair, uint32_t row, const Quad& quad,
                                           const uint32_t (&a)[Layout<Format>::kQuadWords],
                                           const uint32_t (&b)[Layout<Format>::kQuadWords]) {
  constexpr int kWords = Layout<Format>::kQuadWords;
  char* const first = address_of<Format>(pair.first, row, quad.column(0), pair.step);
  char* const second = address_of<Format>(pair.second, row, quad.column(0), pair.step);
  if (!quad.vectors) {
    const int32_t stride = 32 * Layout<Format>::kSize * pair.step;
    store_elements<Format>(first + pair.first_shift, stride, quad, a);
    store_elements<Format>(second + pair.second_shift, stride, quad, b);
  } else if (pair.step == 1) {
    device::store_words(first, a);
    device::store_words(second, b);
  } else {
    uint32_t couples[2 * kWords];
    device::join_couples<Format>(a, b, pair.first_shift != 0, couples);
    device::store_words(first, couples);
  }
}

// Whether the quads of a chunk start on whole vectors of an operand: 4 elements, or 4 couples.
template <class Format>
__device__ __forceinline__ bool quads_aligned(const Operand& operand, uint32_t row, const Chunk& chunk, int32_t step) {
  return (low_bits(address_of<Format>(operand, row, chunk.start, step)) & (4 * Layout<Format>::kSize * step - 1)) == 0;
}
template <class Format>
__device__ __forceinline__ bool quads_aligned(const Pair& pair, uint32_t row, const Chunk& chunk) {
  return quads_aligned<Format>(pair.first, row, chunk, pair.step) &&
         quads_aligned<Format>(pair.second, row, chunk, pair.step);
}

// ---- arithmetic ----------------------------------------------------------------------------------------------------

// The values as a tensor would hold them.
template <class Format>
__device__ __forceinline__ void round_values(float (&values)[Words<Format>::kElements]) {
  Words<Format>::unpack(Words<Format>::pack(values), values);
}

// out goes to a.
template <class Format, Gelu kGelu, int kWords>
__device__ __forceinline__ void forward_words(uint32_t (&a)[kWords], const uint32_t (&b)[kWords], bool round_gelu) {
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
  }
}

// d_gate goes to a and d_up to b. `zero` is 0, which the compiler does not know: every word waits for the one before.
// Without that, ptxas computes all words at once, and to find the registers it puts the loads of b and d behind half of
// the arithmetic (seen with CUDA 13.0 for sm_90).
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

// ---- one chunk of one row -----------------------------------------------------------------------------------------
//
// run() gets the column of the lane's vector. All lanes of the warp take the same way, because the long one deals
// elements across the warp.

__device__ __forceinline__ bool all_whole(const Work& work, uint32_t row, int32_t column, uint32_t address_bits) {
  const bool whole =
      static_cast<uint32_t>(column) < work.vector_starts && row < work.rows && address_bits % kVectorBytes == 0;
  return __all_sync(0xFFFFFFFFu, whole);
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
    if (all_whole(work, row, column, low_bits(gate) | low_bits(up) | low_bits(out))) {
      uint32_t a[4], b[4];
      device::load_words<true>(gate, a);
      device::load_words<true>(up, b);
      forward_words<Format, kGelu>(a, b, false);
      device::store_words(out, a);
    } else {
      run_quads(work, row, chunk_of<Format>(work, column));
    }
  }

  static __device__ __forceinline__ void run_quads(const Work& work, uint32_t row, const Chunk& chunk) {
    if (row >= work.rows || chunk.start >= work.columns) return;
    const bool vectors = inside<Format>(chunk) && quads_aligned<Format>(work.inputs, row, chunk) &&
                         quads_aligned<Format>(work.out, row, chunk, 1);
#pragma unroll 1
    for (int32_t q = 0; q < Layout<Format>::kLaneColumns / 4; ++q) {
      const Quad quad = {chunk, q, vectors};
      uint32_t a[Layout<Format>::kQuadWords], b[Layout<Format>::kQuadWords];
      load_quad<Format, true>(work.inputs, row, quad, a, b);
      forward_words<Format, kGelu>(a, b, work.round_gelu);
      store_quad<Format>(work.out, row, quad, a);
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
    if (all_whole(work, row, column, bits)) {
      uint32_t a[4], b[4], d[4];
      device::load_words<false>(gate, a);
      device::load_words<false>(up, b);
      device::load_words<false>(d_out, d);
      backward_words<Format, kGelu>(a, b, d, false, work.zero);
      device::store_words(d_gate, a);
      device::store_words(d_up, b);
    } else {
      run_quads(work, row, chunk_of<Format>(work, column));
    }
  }

  static __device__ __forceinline__ void run_quads(const Work& work, uint32_t row, const Chunk& chunk) {
    if (row >= work.rows || chunk.start >= work.columns) return;
    const bool vectors = inside<Format>(chunk) && quads_aligned<Format>(work.inputs, row, chunk) &&
                         quads_aligned<Format>(work.gradients, row, chunk) &&
                         quads_aligned<Format>(work.out, row, chunk, 1);
#pragma unroll 1
    for (int32_t q = 0; q < Layout<Format>::kLaneColumns / 4; ++q) {
      const Quad quad = {chunk, q, vectors};
      uint32_t a[Layout<Format>::kQuadWords], b[Layout<Format>::kQuadWords], d[Layout<Format>::kQuadWords];
      load_quad<Format, false>(work.inputs, row, quad, a, b);
      load_quad<Format, false>(work.out, row, quad, d);
      backward_words<Format, kGelu>(a, b, d, work.round_gelu, work.zero);
      store_quad<Format>(work.gradients, row, quad, a, b);
    }
  }
};

// First column of the first chunk of a row: on a line, so 0 or before the row.
template <class Format>
__device__ __forceinline__ int32_t first_column(const Work& work, uint32_t row) {
  return -static_cast<int32_t>((work.lead + row * work.lead_step) % Layout<Format>::kLine);
}

// ---- schedules -----------------------------------------------------------------------------------------------------

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
