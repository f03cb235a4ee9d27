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
  const uint32_t halves = ptx::fp16x2_from_e4m3x2(static_cast<uint16_t>(scales));
  const float low = numerics::mul_rn(ptx::float_from_fp16(static_cast<uint16_t>(halves)), 0x1p118f);
  const float high = numerics::mul_rn(ptx::float_from_fp16(static_cast<uint16_t>(halves >> 16)), 0x1p118f);
  return __byte_perm(__float_as_uint(low), __float_as_uint(high), 0x7632);
}

// Bytes q and q + 4 of a block, each twice: elements 2 q, 2 q + 1 and 2 q + 8, 2 q + 9.
constexpr uint32_t kNvfp4Pick = 0x4400u;
constexpr uint32_t kNvfp4PickNext = 0x1111u;

// One thread's work: copies the block's weights, stage by stage.
template <class Stage, int kStages>
__device__ __forceinline__ void copy_few_rows(const TensorMap* codes, const Nvfp4FewPlan& plan,
                                              const Ring<kStages>& ring, uint32_t stages) {
  RingPosition<kStages> at;
  const int32_t first_pair = static_cast<int32_t>(blockIdx.x) * Stage::kPairs;
  for (int32_t step = 0; step < plan.steps; step += Stage::kSteps) {
    const uint32_t scale_bytes = min(Stage::kSteps, plan.steps - step) * Stage::kScaleTile;
    ring.acquire(at, Stage::kCodeBytes + Stage::kScaleTiles * scale_bytes);
    const uint32_t full = ring.full(at.stage);
    const uint32_t stage = stages + at.stage * Stage::kBytes;
    ptx::tma_load_3d(stage, codes, full, step * 32, first_pair, 0, ptx::L2Hint::kEvictNormal);
#pragma unroll
    for (int t = 0; t < Stage::kScaleTiles; ++t) {
      // Rows that do not exist get the scales of others: their sums go nowhere.
      const int32_t scale_tile = min(first_pair / 64 + t, plan.scale_tiles - 1);
      ptx::bulk_load(stage + Stage::kCodeBytes + t * Stage::kSteps * Stage::kScaleTile,
                     plan.weight_scales + (int64_t{scale_tile} * plan.steps + step) * Stage::kScaleTile, scale_bytes,
                     full);
    }
    at.advance();
  }
}

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
    // Lane 2 r + s decodes the scales of row r of the fragment in steps s, s + 2, ... of a stage.
    const uint32_t of_fragment = lane / 2;
    const uint32_t of_block = blockIdx.x % (128 / min(Stage::kRows, 128)) * Stage::kRows;
    const uint32_t row = of_block + 2 * (first_pair + of_fragment % 8) + of_fragment / 8;
    packed_ = stages + Stage::kCodeBytes + row / 128 * (Stage::kSteps * Stage::kScaleTile) +
              lane % 2 * Stage::kScaleTile + row % 32 * 16 + row % 128 / 32 * 4;
    decoded_ = decoded;
  }

  // Of the block's pairs, this thread's.
  __device__ __forceinline__ int pair() const { return static_cast<int>(pair_); }

  // The scales of a stage, each once in the warp: to bf16 and where load_scales finds them. `steps` of the stage exist.
  __device__ __forceinline__ void decode_scales(uint32_t offset, int32_t steps) const {
    const uint32_t lane = threadIdx.x % 32;
    uint2 decoded[Stage::kSteps / 2];
#pragma unroll
    for (int i = 0; i < Stage::kSteps / 2; ++i) {
      // Those beyond K are what an earlier stage left there.
      const bool exists = static_cast<int32_t>(lane % 2) + 2 * i < steps;
      const uint32_t scales = exists ? ptx::load_shared(packed_ + offset + i * 2 * Stage::kScaleTile) : 0;
      decoded[i] = {nvfp4_two_scales(scales), nvfp4_two_scales(scales >> 16)};
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < Stage::kSteps / 2; ++i) {
      ptx::store_shared_2(decoded_ + (lane % 2 + 2 * i) * 128 + lane / 2 * 8, decoded[i]);
    }
    __syncwarp();
  }
  // Calls body(pair, first, second) for the pairs of blocks of the stage at `offset`, both as fragments of A.
  template <class Body>
  __device__ __forceinline__ void for_each_pair(uint32_t offset, const Body& body) {
#pragma unroll
    for (int s = 0; s < Stage::kSteps; ++s) {
      load_scales(s);
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        uint32_t first[4], second[4];
        decode(offset, s, c, first, second);
        body(2 * s + c, first, second);
      }
    }
  }

 private:
  // Of step s, 64 elements of K.
  __device__ __forceinline__ void load_scales(int s) {
    const uint32_t at = decoded_ + s * 128 + threadIdx.x % 32 / 4 * 8;
    even_scales_ = ptx::load_shared_2(at);
    odd_scales_ = ptx::load_shared_2(at + 64);
  }
  // Blocks 2 c and 2 c + 1 of step s of the stage at `offset`, as fragments of A.
  __device__ __forceinline__ void decode(uint32_t offset, int s, int c, uint32_t (&first)[4],
                                         uint32_t (&second)[4]) const {
    const uint4 even = ptx::load_shared_4(codes_[2 * s + c] + offset);
    const uint4 odd = ptx::load_shared_4(codes_[2 * s + c] + offset + Stage::kOddRows);
    const uint32_t even_scale = c == 0 ? even_scales_.x : even_scales_.y;
    const uint32_t odd_scale = c == 0 ? odd_scales_.x : odd_scales_.y;
    fragment_of<0>(bytes_of(even.x, even.y), bytes_of(odd.x, odd.y), even_scale, odd_scale, first);
    fragment_of<1>(bytes_of(even.z, even.w), bytes_of(odd.z, odd.w), even_scale, odd_scale, second);
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

  uint32_t pair_, selector_, decoded_, packed_;
  uint32_t codes_[Stage::kChunks];
  uint2 even_scales_, odd_scales_;
};

// Two neighbouring blocks of a row of x are four chunks of 16 bytes, one for each lane of a quad: both registers of B
// for either block. Chunk q of row t of eight lies here among their 32 chunks: neither the lanes of a product, which
// read all of them, nor those that write one of each row meet in a bank.
__device__ __forceinline__ uint32_t nvfp4_chunk(uint32_t t, uint32_t q) { return (8 * q + (t ^ 2 * q)) * 16; }

// Blocks 2 pair and 2 pair + 1 of a row of x; zeros if they do not exist.
struct Nvfp4BlockPair {
  uint2 codes[2];
  uint8_t scales[2];  // apart until they are wanted: nothing waits for a load

  __device__ __forceinline__ void load(const Nvfp4Operand& x, int32_t row, int32_t pair) {
    const bool exists = row < x.rows && 2 * pair < x.blocks;
    // K is a multiple of 64, so neighbours are so in every layout.
    const uint8_t* const first = x.scales + numerics::scale_offset(x.layout, row, 2 * pair, x.blocks);
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      codes[b] = {0, 0}, scales[b] = 0;
      if (exists) {
        codes[b] = load_nvfp4_block(x, row, 2 * pair + b);
        scales[b] = __ldg(first + b);
      }
    }
  }
  // Decodes to the 32 chunks at `to`; `row` of eight.
  __device__ __forceinline__ void store(uint32_t row, uint32_t to) const {
    const uint32_t two = nvfp4_two_scales(scales[0] | static_cast<uint32_t>(scales[1]) << 8);
#pragma unroll
    for (uint32_t q = 0; q < 4; ++q) {
      const uint32_t selector = kNvfp4Pick + kNvfp4PickNext * q;
      const uint32_t first = __byte_perm(codes[0].x, codes[0].y, selector);
      const uint32_t second = __byte_perm(codes[1].x, codes[1].y, selector);
      ptx::store_shared_4(to + nvfp4_chunk(row, q),
                          make_uint4(ptx::mul_bf16x2_by_half<0>(nvfp4_low_codes(first), two),
                                     ptx::mul_bf16x2_by_half<0>(nvfp4_high_codes(first), two),
                                     ptx::mul_bf16x2_by_half<1>(nvfp4_low_codes(second), two),
                                     ptx::mul_bf16x2_by_half<1>(nvfp4_high_codes(second), two)));
    }
  }
};

}  // namespace isobit::device
