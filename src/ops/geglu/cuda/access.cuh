// How a warp of geglu's kernels reads and writes its chunk of a row: whole vectors at any alignment, couples of
// alternating tensors, or single elements.
#pragma once

#include "device/elements.cuh"
#include "ops/geglu/cuda/config.h"

namespace isobit::geglu::cuda {

using device::Words;

// ---- operands -------------------------------------------------------------------------------------------------------

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

__device__ __forceinline__ bool on_vector(const char* pointer) { return low_bits(pointer) % kVectorBytes == 0; }

// ---- the lane's vector, at any alignment ----------------------------------------------------------------------------
//
// Loads are issued for all operands before the first is put together, so they come in two steps.

// 16 bytes at p in up to five pieces, none of which leaves them: one vector, four words, or around an odd element half
// a word, three words, half a word.
template <bool kReadOnly>
__device__ __forceinline__ void load_pieces(const char* p, uint32_t* pieces) {
  if (on_vector(p)) {
    uint32_t words[4];
    device::load_words<kReadOnly>(p, words);
#pragma unroll
    for (int i = 0; i < 4; ++i) pieces[i] = words[i];
  } else if (low_bits(p) % 4 == 0) {
#pragma unroll
    for (int i = 0; i < 4; ++i) pieces[i] = device::load_one<kReadOnly>(reinterpret_cast<const uint32_t*>(p) + i);
  } else {
    pieces[0] = device::load_one<kReadOnly>(reinterpret_cast<const uint16_t*>(p));
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      pieces[i + 1] = device::load_one<kReadOnly>(reinterpret_cast<const uint32_t*>(p + 2) + i);
    }
    pieces[4] = device::load_one<kReadOnly>(reinterpret_cast<const uint16_t*>(p + 14));
  }
}

__device__ __forceinline__ void join_pieces(const char* p, const uint32_t* pieces, uint32_t (&words)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = pieces[i];
  if (low_bits(p) % 4 == 0) return;
  words[0] = pieces[0] | pieces[1] << 16;
  words[1] = __funnelshift_r(pieces[1], pieces[2], 16);
  words[2] = __funnelshift_r(pieces[2], pieces[3], 16);
  words[3] = pieces[3] >> 16 | pieces[4] << 16;
}

// 16 bytes of every lane, one lane's behind the other's, to p at any alignment. The lanes exchange words so that all
// but the ends go out as aligned vectors: an aligned vector holds the end of the lane before and the start of this one.
template <class Format>
__device__ __forceinline__ void store_anywhere(char* p, const uint32_t (&words)[4]) {
  using Element = typename Layout<Format>::Element;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t shift = low_bits(p) % kVectorBytes;
  if (shift == 0) return device::store_words(p, words);
  uint32_t both[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    both[i] = __shfl_up_sync(0xFFFFFFFFu, words[i], 1);
    both[4 + i] = words[i];
  }
  // Bytes [start, start + 16) of `both`, by halves of the distance: constant indices keep the words in registers.
  const uint32_t start = kVectorBytes - shift;
  uint32_t vector[4];
#pragma unroll
  for (int i = 0; i < 6; ++i) both[i] = start & 8 ? both[i + 2] : both[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) both[i] = start & 4 ? both[i + 1] : both[i];
#pragma unroll
  for (int i = 0; i < 4; ++i) vector[i] = __funnelshift_r(both[i], both[i + 1], start % 4 * 8);
  if (lane != 0) device::store_words(p - shift, vector);
  const int32_t head = static_cast<int32_t>(start) / Layout<Format>::kSize;  // elements before the first aligned vector
#pragma unroll
  for (int i = 0; i < Layout<Format>::kLaneColumns; ++i) {
    if (lane == 0 ? i >= head : lane != 31 || i < head) continue;
    constexpr int kElements = Words<Format>::kElements;
    reinterpret_cast<Element*>(p)[i] = Words<Format>::element(words[i / kElements], i % kElements);
  }
}

// A pair at the lane's vectors: one of each tensor, or 32 bytes of couples that start on a vector. Addresses are formed
// where they are used, so that none lives through the arithmetic.
template <class Format>
__device__ __forceinline__ char* first_at(const Pair& pair, uint32_t row, int32_t column) {
  return address_of<Format>(pair.first, row, column, pair.step);
}
template <class Format>
__device__ __forceinline__ char* second_at(const Pair& pair, uint32_t row, int32_t column) {
  return address_of<Format>(pair.second, row, column, pair.step);
}
template <class Format>
__device__ __forceinline__ char* couples_at(const Pair& pair, uint32_t row, int32_t column) {
  return address_of<Format>(pair.swapped ? pair.second : pair.first, row, column, 2);
}

template <class Format>
__device__ __forceinline__ bool takes_vectors(const Pair& pair, uint32_t row, int32_t column) {
  return pair.step == 1 || on_vector(couples_at<Format>(pair, row, column));
}

template <class Format, bool kReadOnly>
__device__ __forceinline__ void load_pair(const Pair& pair, uint32_t row, int32_t column, uint32_t (&raw)[10]) {
  const char* const first = first_at<Format>(pair, row, column);
  if (pair.step == 1) {
    load_pieces<kReadOnly>(first, raw);
    load_pieces<kReadOnly>(second_at<Format>(pair, row, column), raw + 5);
  } else {
    uint32_t couples[8];
    device::load_words<kReadOnly>(couples_at<Format>(pair, row, column), couples);
#pragma unroll
    for (int i = 0; i < 8; ++i) raw[i] = couples[i];
  }
}

template <class Format>
__device__ __forceinline__ void join_pair(const Pair& pair, uint32_t row, int32_t column, const uint32_t (&raw)[10],
                                          uint32_t (&a)[4], uint32_t (&b)[4]) {
  if (pair.step == 1) {
    join_pieces(first_at<Format>(pair, row, column), raw, a);
    join_pieces(second_at<Format>(pair, row, column), raw + 5, b);
  } else {
    device::split_couples<Format>(raw, pair.swapped, a, b);
  }
}

template <class Format>
__device__ __forceinline__ void store_pair(const Pair& pair, uint32_t row, int32_t column, const uint32_t (&a)[4],
                                           const uint32_t (&b)[4]) {
  char* const first = first_at<Format>(pair, row, column);
  if (pair.step == 1) {
    store_anywhere<Format>(first, a);
    store_anywhere<Format>(second_at<Format>(pair, row, column), b);
  } else {
    uint32_t couples[8];
    device::join_couples<Format>(a, b, pair.swapped, couples);
    device::store_words(couples_at<Format>(pair, row, column), couples);
  }
}

// ---- single elements ------------------------------------------------------------------------------------------------

// Four columns of a lane that lie a warp apart, so that the warp's accesses are neighbours: start + 32 (4 q + i) +
// lane.
struct Quad {
  Chunk chunk;
  int32_t q;
  __device__ __forceinline__ int32_t column(int i) const { return chunk.start + 32 * (4 * q + i) + chunk.lane; }
  __device__ __forceinline__ bool exists(int i) const {
    return static_cast<uint32_t>(column(i)) < static_cast<uint32_t>(chunk.columns);
  }
};

// `shift` bytes lead from the operand's address to the element (interleaved pairs).
template <class Format, bool kReadOnly>
__device__ __forceinline__ void load_quad(const Operand& operand, uint32_t row, const Quad& quad, int32_t step,
                                          uint32_t (&words)[Layout<Format>::kQuadWords]) {
  using Element = typename Layout<Format>::Element;
  constexpr int kElements = Words<Format>::kElements;
  const char* const first = address_of<Format>(operand, row, quad.column(0), step);
  const int32_t stride = 32 * Layout<Format>::kSize * step;
#pragma unroll
  for (int w = 0; w < Layout<Format>::kQuadWords; ++w) {
    Element x[kElements] = {};
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      const int i = w * kElements + e;
      if (quad.exists(i)) x[e] = device::load_one<kReadOnly>(reinterpret_cast<const Element*>(first + i * stride));
    }
    words[w] = Words<Format>::join(x);
  }
}

template <class Format>
__device__ __forceinline__ void store_quad(const Operand& operand, uint32_t row, const Quad& quad, int32_t step,
                                           const uint32_t (&words)[Layout<Format>::kQuadWords]) {
  using Element = typename Layout<Format>::Element;
  constexpr int kElements = Words<Format>::kElements;
  char* const first = address_of<Format>(operand, row, quad.column(0), step);
  const int32_t stride = 32 * Layout<Format>::kSize * step;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (!quad.exists(i)) continue;
    *reinterpret_cast<Element*>(first + i * stride) = Words<Format>::element(words[i / kElements], i % kElements);
  }
}

}  // namespace isobit::geglu::cuda
