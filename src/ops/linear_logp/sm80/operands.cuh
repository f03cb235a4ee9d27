// Operands of mma.sync in shared memory, and the products of one stage.
//
// A stage holds 32 k of 128 rows of A, then of B. An operand lies there as it does in global memory, in 16-byte chunks
// that are swizzled so that the eight rows that a matrix load reads cover all banks:
//   rows along K    128 rows of 64 bytes; chunk c of row r at c ^ (r / 2) % 4
//   transposed      32 rows, one k each, of 256 bytes; chunk c of row k at c ^ k % 8
// Products of the k16 groups go in ascending order into one accumulator per element of the result, which is the whole
// of the bit contract's section 2.
#pragma once

#include "device/ptx/cp_async.cuh"
#include "device/ptx/memory.cuh"
#include "device/ptx/mma_sync.cuh"
#include "ops/linear_logp/sm80/config.h"

namespace isobit::linear_logp::sm80 {

namespace ptx = device::ptx;

// A matrix of 16-bit elements of which the block copies 128 rows, or, transposed, 128 columns. What does not exist is
// zeros.
struct Matrix {
  const uint16_t* data;
  int64_t stride;
  int32_t first;  // first row (column) of the tile; rows may be below 0
  int32_t rows;   // that exist from `data` on
  int32_t width;

  __device__ __forceinline__ const uint16_t* at(int32_t row, int32_t column) const {
    return data + int64_t{row} * stride + column;
  }
};

template <bool kTransposed>
__device__ __forceinline__ uint32_t chunk_offset(int row, int chunk) {
  if constexpr (kTransposed) return row * Config::kTransposedRowBytes + ((chunk ^ (row % 8)) * 16);
  return row * Config::kRowBytes + ((chunk ^ (row / 2 % 4)) * 16);
}

// Eight elements as they come, one by one: any address, any width.
__device__ __forceinline__ uint4 load_slowly(const uint16_t* from, int32_t count) {
  uint32_t word[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t low = 2 * i < count ? from[2 * i] : 0u;
    const uint32_t high = 2 * i + 1 < count ? from[2 * i + 1] : 0u;
    word[i] = low | high << 16;
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

// 32 k from k on, by all threads; `thread` is the number of this one. kAligned: every row is aligned to 16 bytes.
// Source: like Matrix; rows of one stage are `stride` elements apart.
template <bool kTransposed, bool kAligned, class Source>
__device__ __forceinline__ void copy_operand(const Source& source, int32_t k, unsigned char* shared, int thread) {
  constexpr int kInRow = (kTransposed ? Config::kTransposedRowBytes : Config::kRowBytes) / 16;
  constexpr int kRowsAtOnce = Config::kThreads / kInRow;  // a multiple of the swizzle's period
  constexpr int kTimes = Config::kOperandBytes / 16 / Config::kThreads;
  const int row = thread / kInRow;
  const int chunk = thread % kInRow;
  const int32_t from_row = (kTransposed ? k : source.first) + row;
  const int32_t from_column = (kTransposed ? source.first : k) + 8 * chunk;
  const int32_t left = source.width - from_column;
  const uint16_t* const from = source.at(from_row, from_column);
  unsigned char* const to = shared + chunk_offset<kTransposed>(row, chunk);
  // Registers are short: slow loads and transposed operands come one chunk at a time, others two.
#pragma unroll(kAligned && !kTransposed ? 2 : 1)
  for (int i = 0; i < kTimes; ++i) {
    const int32_t rows = i * kRowsAtOnce;
    const bool exists = from_row + rows >= 0 && from_row + rows < source.rows && left > 0;
    const uint16_t* const chunk_from = from + rows * source.stride;  // not read unless it exists
    unsigned char* const chunk_to = to + rows * kInRow * 16;
    if constexpr (kAligned) {
      const uint32_t bytes = exists ? 2 * static_cast<uint32_t>(left < 8 ? left : 8) : 0;
      ptx::copy_async_16(ptx::shared_address(chunk_to), chunk_from, bytes);
    } else {
      *reinterpret_cast<uint4*>(chunk_to) = load_slowly(chunk_from, exists ? left : 0);
    }
  }
}

// The warp's 32 rows x 128 columns of one stage.
template <class Format, bool kTransposedA, bool kTransposedB>
__device__ __forceinline__ void multiply_stage(uint32_t stage, float (&d)[2][64], int thread) {
  const int lane = thread % 32;
  const int warp_row = thread / 32 * Config::kWarpRows;
  // Of the four 8 x 8 matrices of a load lane i addresses row i % 8 of number i / 8. Those of A ascend along M, then K,
  // those of B along K, then N.
  const int in_matrix = lane % 8;
  const int low = lane / 8 % 2;
  const int high = lane / 16;
#pragma unroll
  for (int k16 = 0; k16 < Config::kDepth / 16; ++k16) {
    uint32_t a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const int row = warp_row + 16 * m;
      if constexpr (kTransposedA) {
        ptx::load_matrix_x4_transposed(a[m],
                                       stage + chunk_offset<true>(16 * k16 + 8 * high + in_matrix, row / 8 + low));
      } else {
        ptx::load_matrix_x4(a[m], stage + chunk_offset<false>(row + 8 * low + in_matrix, 2 * k16 + high));
      }
    }
#pragma unroll
    for (int pair = 0; pair < Config::kIds / 16; ++pair) {
      uint32_t b[4];
      const uint32_t from = stage + Config::kOperandBytes;
      if constexpr (kTransposedB) {
        ptx::load_matrix_x4_transposed(b, from + chunk_offset<true>(16 * k16 + 8 * low + in_matrix, 2 * pair + high));
      } else {
        ptx::load_matrix_x4(b, from + chunk_offset<false>(16 * pair + 8 * high + in_matrix, 2 * k16 + low));
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        ptx::mma_m16n8k16<Format>(&d[m][8 * pair], a[m], b[0], b[1]);
        ptx::mma_m16n8k16<Format>(&d[m][8 * pair + 4], a[m], b[2], b[3]);
      }
    }
  }
}

// The tile's products over `steps` stages, from +0; copy(step, stage) brings the operands of one. When it returns all
// threads are done with the stages. Warps beyond the tile's `rows` rows of A have nothing to multiply.
template <class Format, bool kTransposedA, bool kTransposedB, class Copy>
__device__ __forceinline__ void multiply_tile(float (&d)[2][64], int32_t rows, int32_t steps, unsigned char* shared,
                                              int thread, const Copy& copy) {
  const bool multiplies = thread / 32 * Config::kWarpRows < rows;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int i = 0; i < 64; ++i) d[m][i] = 0.0f;
  }
  // Two stages under way; the third is the one that is multiplied.
  for (int ahead = 0; ahead < Config::kStages - 1; ++ahead) {
    if (ahead < steps) copy(ahead, shared + ahead * Config::kStageBytes);
    ptx::copy_async_commit();
  }
  for (int32_t step = 0; step < steps; ++step) {
    ptx::copy_async_wait<Config::kStages - 2>();
    __syncthreads();  // the stage has arrived for all, and all are done with the one that is filled next
    const int32_t ahead = step + Config::kStages - 1;
    if (ahead < steps) copy(ahead, shared + ahead % Config::kStages * Config::kStageBytes);
    ptx::copy_async_commit();
    const uint32_t stage = ptx::shared_address(shared) + step % Config::kStages * Config::kStageBytes;
    if (multiplies) multiply_stage<Format, kTransposedA, kTransposedB>(stage, d, thread);
  }
  __syncthreads();
}

}  // namespace isobit::linear_logp::sm80
