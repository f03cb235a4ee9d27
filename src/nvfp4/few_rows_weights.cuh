// Operands of the products of few rows: weights from a stage in shared memory to fragments of A, x from global memory
// to bf16. Either comes out as value * 2^-8, so sums are 2^-16 of the true ones (decode.cuh).
#pragma once

#include <cstdint>

#include "device/ptx/convert.cuh"
#include "device/ptx/memory.cuh"
#include "device/ptx/packed.cuh"
#include "device/ptx/tma.cuh"
#include "device/ring.cuh"
#include "numerics/ieee.h"
#include "nvfp4/decode.cuh"
#include "nvfp4/few_rows.h"
#include "nvfp4/unpack.cuh"

namespace isobit::device {

// Two scales times 2^118 as bf16, the first in the low half.
__device__ __forceinline__ uint32_t nvfp4_two_scales(uint32_t scales) {
  constexpr uint32_t kTwoTo118 = 0x7A807A80u;
  const uint32_t halves = ptx::fp16x2_from_e4m3x2(static_cast<uint16_t>(scales));
  const float low = ptx::float_from_fp16(static_cast<uint16_t>(halves));
  const float high = ptx::float_from_fp16(static_cast<uint16_t>(halves >> 16));
  return ptx::mul_bf16x2(__byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632), kTwoTo118);
}

// Bytes q and q + 4 of a block, each twice: elements 2 q, 2 q + 1 and 2 q + 8, 2 q + 9.
constexpr uint32_t kNvfp4Pick = 0x4400u;
constexpr uint32_t kNvfp4PickNext = 0x1111u;

// One thread's work: copies the block's weights, stage by stage.
template <class Stage, int kStages>
class Nvfp4FewCopy {
 public:
  __device__ __forceinline__ Nvfp4FewCopy(const TensorMap* codes, const Nvfp4FewPlan& plan, const Ring<kStages>& ring,
                                          uint32_t stages)
      : codes_(codes), plan_(plan), ring_(ring), stages_(stages) {}

  // Up to `steps` of K, none of them twice.
  __device__ __forceinline__ void copy_until(int32_t steps) {
    const int32_t first_pair = static_cast<int32_t>(blockIdx.x) * Stage::kPairs;
#pragma unroll 1
    for (; step_ < steps; step_ += Stage::kSteps) {
      const uint32_t scale_bytes = min(Stage::kSteps, plan_.steps - step_) * Stage::kScaleTile;
      ring_.acquire(at_, Stage::kCodeBytes + Stage::kScaleTiles * scale_bytes);
      const uint32_t full = ring_.full(at_.stage);
      const uint32_t stage = stages_ + at_.stage * Stage::kBytes;
      ptx::tma_load_3d(stage, codes_, full, step_ * 32, first_pair, 0, ptx::L2Hint::kEvictNormal);
#pragma unroll
      for (int t = 0; t < Stage::kScaleTiles; ++t) {
        // Rows that do not exist get the scales of others: their sums go nowhere.
        const int32_t scale_tile = min(first_pair / 64 + t, plan_.scale_tiles - 1);
        ptx::bulk_load(stage + Stage::kCodeBytes + t * Stage::kSteps * Stage::kScaleTile,
                       plan_.weight_scales + (int64_t{scale_tile} * plan_.steps + step_) * Stage::kScaleTile,
                       scale_bytes, full);
      }
      at_.advance();
    }
  }

 private:
  const TensorMap* codes_;
  const Nvfp4FewPlan& plan_;
  Ring<kStages> ring_;
  uint32_t stages_;
  int32_t step_ = 0;
  RingPosition<kStages> at_;
};

// A warp's 16 weight rows in the order of the fragment: the even ones of eight pairs, then the odd ones.
template <class Stage>
class Nvfp4FewWeights {
 public:
  // `decoded`: kDecodedWarp bytes of the warp's own.
  __device__ __forceinline__ Nvfp4FewWeights(uint32_t stages, uint32_t decoded, int first_pair)
      : pair_(first_pair + threadIdx.x % 32 / 4) {
    const uint32_t lane = threadIdx.x % 32;
    selector_ = kNvfp4Pick + kNvfp4PickNext * (lane % 4);
#pragma unroll
    for (uint32_t c = 0; c < Stage::kChunks; ++c) {
      const uint32_t swizzle = Stage::kDepth == 128 ? pair_ / 2 % 4 : pair_ % 8;
      codes_[c] = stages + pair_ * Stage::kCodeRow + (c ^ swizzle) * 16;
    }
    // Lane 2 r + s decodes the scales of row r of the fragment in one half of a stage's steps, which lie together in a
    // row's 16 or 32 bytes. Halves of 16 bytes change places in every second four rows: lanes that read one half of
    // eight rows do not meet in a bank.
    const uint32_t of_fragment = lane / 2;
    const uint32_t of_block = blockIdx.x % (128 / min(Stage::kRows, 128)) * Stage::kRows;
    const uint32_t row = of_block + 2 * (first_pair + of_fragment % 8) + of_fragment / 8;
    packed_ = stages + Stage::kCodeBytes + row / 128 * (Stage::kSteps * Stage::kScaleTile) +
              lane % 2 * (kHalfSteps * Stage::kScaleTile) + row % 32 * 16 + row % 128 / 32 * 4;
    const auto half_of_row = [&](uint32_t r, uint32_t half) {
      return decoded + (2 * r + (kHalfSteps == 1 ? half : half ^ r / 4 % 2)) * (8 * kHalfSteps);
    };
    decoded_ = half_of_row(of_fragment, lane % 2);
#pragma unroll
    for (uint32_t i = 0; i < kHalfSteps; ++i) scales_[i] = half_of_row(lane / 4, i);
  }

  // Of the block's pairs, this thread's.
  __device__ __forceinline__ int pair() const { return static_cast<int>(pair_); }

  // The scales of a stage, each once in the warp: to bf16 and where load_scales finds them. `steps` of the stage exist.
  __device__ __forceinline__ void decode_scales(uint32_t offset, int32_t steps) const {
    const auto first = static_cast<int32_t>(threadIdx.x % 2 * kHalfSteps);
    uint2 decoded[kHalfSteps];
#pragma unroll
    for (int i = 0; i < kHalfSteps; ++i) {
      // Those beyond K are what an earlier stage left there.
      const bool exists = first + i < steps;
      const uint32_t scales = exists ? ptx::load_shared(packed_ + offset + i * Stage::kScaleTile) : 0;
      decoded[i] = {nvfp4_two_scales(scales), nvfp4_two_scales(scales >> 16)};
    }
    __syncwarp();
    if constexpr (kHalfSteps == 1) {
      ptx::store_shared_2(decoded_, decoded[0]);
    } else {
      ptx::store_shared_4(decoded_, make_uint4(decoded[0].x, decoded[0].y, decoded[1].x, decoded[1].y));
    }
    __syncwarp();
  }
  // Calls body(pair, decode) for the pairs of blocks of the stage at `offset`; decode(first, second) makes both
  // fragments of A.
  template <class Body>
  __device__ __forceinline__ void for_each_pair(uint32_t offset, const Body& body) {
    // Loaded some pairs ahead of their use.
    constexpr int kAhead = 2;
    uint4 even[kAhead + 1], odd[kAhead + 1];
    const auto load_codes = [&](int pair) {
      even[pair % (kAhead + 1)] = ptx::load_shared_4(codes_[pair] + offset);
      odd[pair % (kAhead + 1)] = ptx::load_shared_4(codes_[pair] + offset + Stage::kOddRows);
    };
    load_scales(0);
#pragma unroll
    for (int pair = 0; pair < kAhead; ++pair) load_codes(pair);
#pragma unroll
    for (int pair = 0; pair < Stage::kChunks; ++pair) {
      if (pair % 4 == 2 && pair + 2 < Stage::kChunks) load_scales(pair / 4 + 1);
      if (pair + kAhead < Stage::kChunks) load_codes(pair + kAhead);
      body(pair, [&](uint32_t(&first)[4], uint32_t(&second)[4]) {
        const uint4& e = even[pair % (kAhead + 1)];
        const uint4& o = odd[pair % (kAhead + 1)];
        const uint32_t even_scale = word_of(even_scales_[pair / 4 % 2], pair % 4);
        const uint32_t odd_scale = word_of(odd_scales_[pair / 4 % 2], pair % 4);
        fragment_of<0>(bytes_of(e.x, e.y), bytes_of(o.x, o.y), even_scale, odd_scale, first);
        fragment_of<1>(bytes_of(e.z, e.w), bytes_of(o.z, o.w), even_scale, odd_scale, second);
      });
    }
  }

 private:
  // Of steps 2 i and 2 i + 1, 64 elements of K each.
  __device__ __forceinline__ void load_scales(int i) {
    even_scales_[i % 2] = ptx::load_shared_4(scales_[i]);
    odd_scales_[i % 2] = ptx::load_shared_4(scales_[i] + Stage::kDecodedWarp / 2);
  }
  static __device__ __forceinline__ uint32_t word_of(const uint4& words, int i) {
    return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
  }
  __device__ __forceinline__ uint32_t bytes_of(uint32_t low, uint32_t high) const {
    return __byte_perm(low, high, selector_);
  }
  template <int kHalf>
  static __device__ __forceinline__ void fragment_of(uint32_t even, uint32_t odd, uint32_t even_scale,
                                                     uint32_t odd_scale, uint32_t (&fragment)[4]) {
    fragment[0] = ptx::mul_bf16x2_by_half<kHalf>(nvfp4_low_codes(even), even_scale);
    fragment[1] = ptx::mul_bf16x2_by_half<kHalf>(nvfp4_low_codes(odd), odd_scale);
    fragment[2] = ptx::mul_bf16x2_by_half<kHalf>(nvfp4_high_codes(even), even_scale);
    fragment[3] = ptx::mul_bf16x2_by_half<kHalf>(nvfp4_high_codes(odd), odd_scale);
  }

  static constexpr uint32_t kHalfSteps = Stage::kSteps / 2;

  uint32_t pair_, selector_, packed_;
  uint32_t decoded_;             // where the lane's decoded scales go
  uint32_t scales_[kHalfSteps];  // and where those of its row are, two steps each
  uint32_t codes_[Stage::kChunks];
  uint4 even_scales_[2], odd_scales_[2];
};

// Two neighbouring blocks of a row of x are four chunks of 16 bytes, one for each lane of a quad: both registers of B
// for either block. Chunk q of row t of eight lies here among their 32 chunks: neither the lanes of a product, which
// read all of them, nor those that write one of each row meet in a bank.
__device__ __forceinline__ uint32_t nvfp4_chunk(uint32_t t, uint32_t q) { return (8 * q + (t ^ 2 * q)) * 16; }

// Whether two neighbouring blocks of a row of x can be loaded together. K is a multiple of 64.
__device__ __forceinline__ bool nvfp4_pairs_are_aligned(const Nvfp4Operand& x) {
  const uint64_t codes = reinterpret_cast<uint64_t>(x.codes) | static_cast<uint64_t>(x.row_bytes);
  return codes % 16 == 0 && reinterpret_cast<uint64_t>(x.scales) % 2 == 0;
}

// Blocks 2 pair and 2 pair + 1 of a row of x; zeros if they do not exist. Every block of the grid reads all of x, all
// at once: what one instruction asks for counts.
struct Nvfp4BlockPair {
  uint2 codes[2];
  uint32_t scales[2];  // both in the first one, or apart until they are wanted: nothing waits for a load

  __device__ __forceinline__ void load(const Nvfp4Operand& x, int32_t row, int32_t pair) {
    load(x, row, pair, x.scales + numerics::scale_offset(x.layout, row, 2 * pair, x.blocks));
  }
  // The scale of the first block lies at `first`, unless it does not exist.
  __device__ __forceinline__ void load(const Nvfp4Operand& x, int32_t row, int32_t pair, const uint8_t* first) {
    codes[0] = codes[1] = {0, 0};
    scales[0] = scales[1] = 0;
    if (row >= x.rows || 2 * pair >= x.blocks) return;
    if (nvfp4_pairs_are_aligned(x)) {
      const uint4 both = __ldg(reinterpret_cast<const uint4*>(x.codes + row * x.row_bytes + 16 * pair));
      codes[0] = {both.x, both.y}, codes[1] = {both.z, both.w};
      scales[0] = __ldg(reinterpret_cast<const uint16_t*>(first));
      return;
    }
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      codes[b] = load_nvfp4_block(x, row, 2 * pair + b);
      scales[b] = __ldg(first + b);
    }
  }
  // Decodes to the 32 chunks at `to`; `row` of eight.
  __device__ __forceinline__ void store(uint32_t row, uint32_t to) const {
    const uint32_t two = nvfp4_two_scales(scales[0] | scales[1] << 8);
#pragma unroll
    for (uint32_t q = 0; q < 4; ++q) {
      const uint32_t first = bytes_of(0, q), second = bytes_of(1, q);
      ptx::store_shared_4(to + nvfp4_chunk(row, q),
                          make_uint4(ptx::mul_bf16x2_by_half<0>(nvfp4_low_codes(first), two),
                                     ptx::mul_bf16x2_by_half<0>(nvfp4_high_codes(first), two),
                                     ptx::mul_bf16x2_by_half<1>(nvfp4_low_codes(second), two),
                                     ptx::mul_bf16x2_by_half<1>(nvfp4_high_codes(second), two)));
    }
  }
  // Decodes to a row of 128 bytes in the swizzle, K-major as wgmma reads it: chunks first_chunk to first_chunk + 3.
  __device__ __forceinline__ void store_swizzled(uint32_t row, uint32_t to, uint32_t first_chunk) const {
    const uint32_t two = nvfp4_two_scales(scales[0] | scales[1] << 8);
    store_block<0>(row, to, first_chunk, two);
    store_block<1>(row, to, first_chunk + 2, two);
  }

 private:
  __device__ __forceinline__ uint32_t bytes_of(int block, uint32_t q) const {
    return __byte_perm(codes[block].x, codes[block].y, kNvfp4Pick + kNvfp4PickNext * q);
  }
  template <int kBlock>
  __device__ __forceinline__ void store_block(uint32_t row, uint32_t to, uint32_t chunk, uint32_t two) const {
    uint32_t low[4], high[4];
#pragma unroll
    for (uint32_t q = 0; q < 4; ++q) {
      low[q] = ptx::mul_bf16x2_by_half<kBlock>(nvfp4_low_codes(bytes_of(kBlock, q)), two);
      high[q] = ptx::mul_bf16x2_by_half<kBlock>(nvfp4_high_codes(bytes_of(kBlock, q)), two);
    }
    ptx::store_shared_4(to + (chunk ^ row) * 16, make_uint4(low[0], low[1], low[2], low[3]));
    ptx::store_shared_4(to + (chunk + 1 ^ row) * 16, make_uint4(high[0], high[1], high[2], high[3]));
  }
};

}  // namespace isobit::device
