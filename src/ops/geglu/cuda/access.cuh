// How a warp of geglu's kernels reads and writes its chunk of a row: vectors, couples of alternating tensors, words at
// any alignment, or what exists of a chunk at the end of a row.
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

// ---- words ----------------------------------------------------------------------------------------------------------
//
// For operands that are not aligned alike no realignment is cheap enough, so a lane takes four words that lie a warp
// apart, at any alignment of the elements: neighbouring lanes have neighbouring words, and nothing outside is touched.
// An operand whose words straddle the alignment of a word is read and written in halves.

// The lane's words of an operand; bit `index` of work.halves tells of row 0, and of work.halves_step whether rows
// differ.
struct Spread {
  char* first;
  bool halves;
};

template <class Format>
__device__ __forceinline__ Spread spread_of(const Work& work, const Operand& operand, int index, uint32_t row,
                                            const Chunk& chunk) {
  const uint32_t halves = work.halves ^ (row % 2 != 0 ? work.halves_step : 0);
  return {address_of<Format>(operand, row, chunk.start + chunk.lane * Words<Format>::kElements, 1),
          Words<Format>::kElements == 2 && (halves >> index & 1) != 0};
}

// Loads are issued for all operands before the first is put together: whole words, or low halves before high ones.
template <class Format, bool kReadOnly>
__device__ __forceinline__ void load_spread(const Spread& from, uint32_t (&raw)[8]) {
  if (from.halves) {
    const auto* const halves = reinterpret_cast<const uint16_t*>(from.first);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      raw[i] = device::load_one<kReadOnly>(halves + 64 * i);
      raw[4 + i] = device::load_one<kReadOnly>(halves + 64 * i + 1);
    }
  } else {
    const auto* const words = reinterpret_cast<const uint32_t*>(from.first);
#pragma unroll
    for (int i = 0; i < 4; ++i) raw[i] = device::load_one<kReadOnly>(words + 32 * i);
  }
}

// The selector of whole words takes nothing from the high halves, which are not set then.
template <class Format>
__device__ __forceinline__ void join_spread(const Spread& from, const uint32_t (&raw)[8], uint32_t (&words)[4]) {
  const uint32_t selector = from.halves ? 0x5410 : 0x3210;
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = __byte_perm(raw[i], raw[4 + i], selector);
}

template <class Format>
__device__ __forceinline__ void store_spread(const Spread& to, const uint32_t (&words)[4]) {
  if (to.halves) {
    auto* const halves = reinterpret_cast<uint16_t*>(to.first);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      halves[64 * i] = static_cast<uint16_t>(words[i]);
      halves[64 * i + 1] = static_cast<uint16_t>(words[i] >> 16);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) reinterpret_cast<uint32_t*>(to.first)[32 * i] = words[i];
  }
}

// ---- couples --------------------------------------------------------------------------------------------------------
//
// gate and up (or their gradients) at the lane's vector as couples in the order of memory, of which `swapped` says
// whether up comes first: 32 bytes if they alternate, else two vectors.

template <class Format>
__device__ __forceinline__ char* couples_at(const Pair& pair, uint32_t row, int32_t column) {
  return address_of<Format>(pair.swapped ? pair.second : pair.first, row, column, 2);
}

template <class Format, bool kReadOnly>
__device__ __forceinline__ void load_couples(const Pair& pair, uint32_t row, int32_t column, uint32_t (&couples)[8]) {
  if (pair.step == 2) {
    device::load_words<kReadOnly>(couples_at<Format>(pair, row, column), couples);
  } else {
    uint32_t a[4], b[4];
    device::load_words<kReadOnly>(address_of<Format>(pair.first, row, column, 1), a);
    device::load_words<kReadOnly>(address_of<Format>(pair.second, row, column, 1), b);
    device::join_couples<Format>(a, b, couples);
  }
}

template <class Format>
__device__ __forceinline__ void store_couples(const Pair& pair, uint32_t row, int32_t column,
                                              const uint32_t (&couples)[8]) {
  if (pair.step == 2) {
    device::store_words(couples_at<Format>(pair, row, column), couples);
  } else {
    uint32_t a[4], b[4];
    device::split_couples<Format>(couples, a, b);
    device::store_words(address_of<Format>(pair.first, row, column, 1), a);
    device::store_words(address_of<Format>(pair.second, row, column, 1), b);
  }
}

// ---- ends of rows ---------------------------------------------------------------------------------------------------
//
// Words as above, but element by element: an element is read and written only if its column exists. kStep is the
// distance of neighbouring elements, or 0 if only the operand knows.

template <class Format>
__device__ __forceinline__ bool exists(const Chunk& chunk, int i, int e) {
  constexpr int kElements = Words<Format>::kElements;
  const int32_t column = chunk.start + chunk.lane * kElements + 32 * kElements * i + e;
  return static_cast<uint32_t>(column) < static_cast<uint32_t>(chunk.columns);
}

// Words of the chunk before which the row ends.
template <class Format>
__device__ __forceinline__ int existing_words(const Chunk& chunk) {
  constexpr int32_t kColumns = 32 * Words<Format>::kElements;
  return (chunk.columns - chunk.start + kColumns - 1) / kColumns;
}

template <class Format, int kStep>
__device__ __forceinline__ char* element_at(const Operand& operand, uint32_t row, const Chunk& chunk, int32_t step,
                                            int i, int e) {
  constexpr int kElements = Words<Format>::kElements;
  if constexpr (kStep != 0) step = kStep;
  return address_of<Format>(operand, row, chunk.start + chunk.lane * kElements, step) +
         (32 * kElements * i + e) * step * Layout<Format>::kSize;
}

template <class Format, int kStep, bool kReadOnly>
__device__ __forceinline__ void load_existing(const Operand& operand, uint32_t row, const Chunk& chunk, int32_t step,
                                              uint32_t (&words)[4]) {
  using Element = typename Layout<Format>::Element;
  constexpr int kElements = Words<Format>::kElements;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    Element x[kElements] = {};
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      const char* const at = element_at<Format, kStep>(operand, row, chunk, step, i, e);
      if (exists<Format>(chunk, i, e)) x[e] = device::load_one<kReadOnly>(reinterpret_cast<const Element*>(at));
    }
    words[i] = Words<Format>::join(x);
  }
}

template <class Format, int kStep>
__device__ __forceinline__ void store_existing(const Operand& operand, uint32_t row, const Chunk& chunk, int32_t step,
                                               const uint32_t (&words)[4]) {
  using Element = typename Layout<Format>::Element;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int e = 0; e < Words<Format>::kElements; ++e) {
      char* const at = element_at<Format, kStep>(operand, row, chunk, step, i, e);
      if (exists<Format>(chunk, i, e)) *reinterpret_cast<Element*>(at) = Words<Format>::element(words[i], e);
    }
  }
}

}  // namespace isobit::geglu::cuda
