// Product of two NVFP4 matrices with WGMMA on SM90: weights are decoded in registers, x comes decoded.
//
//   x (bf16, unpacked once) ── copy engine ──> [tokens x 64]  ──────────────────────────────> B of wgmma
//   weight codes ───────────── copy engine ──> [pairs x 32 B | pairs x 32 B] ─ registers ───> A of wgmma, m64
//   weight scales ──────────── copy engine ──> [128 x 4 B]  ──────────────────────┘ decode
//
// Persistent blocks. Thread 0 copies; every other warpgroup owns 64 weight rows and all tokens of the tile. Weight rows
// come in pairs 2 i and 2 i + 1: both of a pair are rows g and g + 8 of one warp's fragment, so one thread has the sums
// of a pair and a token beside each other. Each k16 step multiplies one block of 16 while the next one is decoded; one
// accumulator takes all blocks in ascending order, which is the whole of the tensor-core rule.
//
// x is unpacked as value * 2^8 and the weight as value * 2^-8 (nvfp4_decode.cuh), so the sums are the true ones. The 16
// elements of a block lie in another order than in memory, the same in both operands.
#pragma once

#include <cstdint>

#include "device/ptx/convert.cuh"
#include "device/ptx/memory.cuh"
#include "device/ptx/registers.cuh"
#include "device/ptx/synchronize.cuh"
#include "device/ptx/tma.cuh"
#include "device/ptx/wgmma.cuh"
#include "device/ptx/wgmma_registers.cuh"
#include "device/ring.cuh"
#include "device/wgmma_descriptor.h"
#include "numerics/scale_layout.h"
#include "nvfp4/decode.cuh"
#include "nvfp4/tile.h"
#include "nvfp4/wgmma.h"

namespace isobit::device {

// Half a block of x to 16 bytes; a thread each, so that a warp's stores are neighbours. Runs before the product, which
// may start meanwhile. The first half has the block's even elements, the second one the odd ones: a low or high half of
// every byte, in the order in which the product decodes its weights.
__device__ __forceinline__ void unpack_nvfp4_half(const Nvfp4Operand& x, const Nvfp4Unpack& to, int64_t index) {
  const int64_t per_row = 2 * int64_t{x.blocks};
  // A division of 64 bits takes longer than everything else here.
  const bool narrow = index >> 32 == 0;
  const int64_t local = narrow ? static_cast<uint32_t>(index) / static_cast<uint32_t>(per_row) : index / per_row;
  if (local >= to.rows) return;
  const int64_t row = to.first_row + local;
  const auto in_row = static_cast<int32_t>(index - local * per_row);
  const int32_t block = in_row / 2;
  const uint8_t* const codes = x.codes + row * x.row_bytes + 8 * int64_t{block};
  uint2 packed = {0, 0};
  if (x.aligned) {
    packed = __ldg(reinterpret_cast<const uint2*>(codes));
  } else {
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      packed.x |= static_cast<uint32_t>(__ldg(codes + b)) << (8 * b);
      packed.y |= static_cast<uint32_t>(__ldg(codes + 4 + b)) << (8 * b);
    }
  }
  if (in_row % 2 == 1) packed = {packed.x >> 4, packed.y >> 4};
  const uint32_t scale = nvfp4_scale_pair(__ldg(x.scales + numerics::scale_offset(x.layout, row, block, x.blocks)));
  constexpr uint32_t kTwoTo16 = 0x47804780u;
  uint32_t pairs[4];
#pragma unroll
  for (uint32_t q = 0; q < 4; ++q) {
    const uint32_t codes_of_pair = nvfp4_low_codes(__byte_perm(packed.x, packed.y, 0x4400u + 0x1111u * q));
    pairs[q] = ptx::mul_bf16x2(ptx::mul_bf16x2(codes_of_pair, scale), kTwoTo16);
  }
  *reinterpret_cast<uint4*>(to.out + 16 * (local * per_row + in_row)) =
      make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// The block's shared memory, by address.
template <class Config>
struct Nvfp4Shared {
  uint32_t tokens;   // stages of x
  uint32_t weights;  // stages of codes and scales
  uint32_t staging;
  uint32_t barriers;           // of the ring
  uint32_t epilogue_barriers;  // two a group
  __device__ __forceinline__ explicit Nvfp4Shared(uint32_t base) {
    tokens = (base + Config::kAlignment - 1) / Config::kAlignment * Config::kAlignment;
    weights = tokens + Config::kStages * Config::kTokenBytes;
    staging = weights + Config::kStages * Config::kWeightBytes;
    barriers = staging + Config::kStagingBytes;
    epilogue_barriers = barriers + 2 * Config::kMostStages * 8;
  }
};

struct Nvfp4TilePlace {
  int32_t token_tile, row_tile;
  bool last;  // of this block
};

// Calls body(tile) for the block's tiles. Neighbouring blocks have neighbouring token tiles: a weight tile is read from
// memory once and then from L2.
template <class Body>
__device__ __forceinline__ void for_each_tile(const Nvfp4WgmmaPlan& plan, const Body& body) {
  const auto tokens = static_cast<uint32_t>(plan.token_tiles);
  const uint32_t tiles = tokens * static_cast<uint32_t>(plan.row_tiles);
  for (uint32_t index = blockIdx.x; index < tiles; index += gridDim.x) {
    const uint32_t row_tile = index / tokens;
    body(Nvfp4TilePlace{static_cast<int32_t>(index - row_tile * tokens), static_cast<int32_t>(row_tile),
                        index + gridDim.x >= tiles});
  }
}

// One thread's work: fills the ring.
template <class Config>
__device__ __forceinline__ void copy_nvfp4(const TensorMap* x, const TensorMap* codes, const Nvfp4WgmmaPlan& plan,
                                           const Ring<Config::kStages>& ring, const Nvfp4Shared<Config>& shared) {
  RingPosition<Config::kStages> at;
  bool unpacked = false;
  for_each_tile(plan, [&](const Nvfp4TilePlace& tile) {
    const int32_t first_pair = tile.row_tile * Config::kPairs;
    for (int32_t step = 0; step < plan.steps; ++step) {
      ring.acquire(at, Config::kStageBytes);
      const uint32_t full = ring.full(at.stage);
      const uint32_t weights = shared.weights + at.stage * Config::kWeightBytes;
      ptx::tma_load_3d(weights, codes, full, step * static_cast<int32_t>(Config::kCodeRow), first_pair, 0,
                       ptx::L2Hint::kEvictNormal);
#pragma unroll
      for (int t = 0; t < Config::kScaleTiles; ++t) {
        // Rows that do not exist get the scales of others: their sums go nowhere.
        const int32_t scale_tile = min(first_pair / 64 + t, plan.scale_tiles - 1);
        ptx::bulk_load(weights + Config::kCodeBytes + t * Config::kScaleTile,
                       plan.weight_scales + (int64_t{scale_tile} * plan.steps + step) * Config::kScaleTile,
                       Config::kScaleTile, full);
      }
      if (!unpacked) {
        ptx::wait_for_previous_grid();
        unpacked = true;
      }
      ptx::tma_load_2d(shared.tokens + at.stage * Config::kTokenBytes, x, full, step * Config::kDepth,
                       tile.token_tile * Config::kTokens, ptx::L2Hint::kEvictLast);
      at.advance();
    }
  });
}

// A thread's share of its warpgroup's weight rows: pair `pair()` of the tile.
template <class Config>
class Nvfp4Weights {
 public:
  __device__ __forceinline__ Nvfp4Weights(const Nvfp4Shared<Config>& shared, int group) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x % Config::kWarpgroup / 32;
    pair_ = 32 * group + 8 * warp + lane / 4;
    codes_ = shared.weights + pair_ * Config::kCodeRow;
    selector_ = 0x4400u + 0x1111u * (lane % 4);
    scales_ = shared.weights + Config::kCodeBytes;
  }
  __device__ __forceinline__ int pair() const { return pair_; }

  // Where the scales of this tile's rows lie in a stage.
  __device__ __forceinline__ void start_tile(const Nvfp4TilePlace& tile) {
    const int row = 2 * (tile.row_tile * Config::kPairs % 64 + pair_);
    tile_scales_ = scales_ + row / 128 * Config::kScaleTile + row % 32 * 16 + row % 128 / 32 * 4;
  }
  // The next stage's scales, to be used after turn_scales().
  __device__ __forceinline__ void load_scales(uint32_t stage) {
    next_even_scales_ = ptx::load_shared(tile_scales_ + stage * Config::kWeightBytes);
    next_odd_scales_ = ptx::load_shared(tile_scales_ + stage * Config::kWeightBytes + 16);
  }
  __device__ __forceinline__ void turn_scales() {
    even_scales_ = next_even_scales_;
    odd_scales_ = next_odd_scales_;
  }
  // Blocks 2 half and 2 half + 1 of a stage.
  __device__ __forceinline__ void load_codes(uint32_t stage, int half) {
    const uint32_t at = codes_ + stage * Config::kWeightBytes + 16 * half;
    even_[half] = ptx::load_shared_4(at);
    odd_[half] = ptx::load_shared_4(at + Config::kPairs * Config::kCodeRow);
  }
  // The loaded codes of a block as a fragment of A.
  __device__ __forceinline__ void decode(int block, uint32_t (&fragment)[4]) const {
    const uint32_t both = __byte_perm(even_scales_, odd_scales_, (4 + block) << 4 | block);
    const uint32_t halves = ptx::fp16x2_from_e4m3x2(static_cast<uint16_t>(both));
    const uint32_t even = scale_pair(static_cast<uint16_t>(halves));
    const uint32_t odd = scale_pair(static_cast<uint16_t>(halves >> 16));
    const uint32_t even_bytes = bytes_of(even_[block / 2], block);
    const uint32_t odd_bytes = bytes_of(odd_[block / 2], block);
    fragment[0] = ptx::mul_bf16x2_here(nvfp4_low_codes(even_bytes), even);
    fragment[1] = ptx::mul_bf16x2_here(nvfp4_low_codes(odd_bytes), odd);
    fragment[2] = ptx::mul_bf16x2_here(nvfp4_high_codes(even_bytes), even);
    fragment[3] = ptx::mul_bf16x2_here(nvfp4_high_codes(odd_bytes), odd);
  }

 private:
  static __device__ __forceinline__ uint32_t scale_pair(uint16_t scale) {
    const float wide = numerics::mul_rn(ptx::float_from_fp16(scale), 0x1p118f);
    return __byte_perm(__float_as_uint(wide), 0, 0x3232);
  }
  // Bytes q and q + 4 of a block, q = lane % 4: elements 2 q, 2 q + 1 and 2 q + 8, 2 q + 9.
  __device__ __forceinline__ uint32_t bytes_of(const uint4& half, int block) const {
    return block % 2 == 0 ? __byte_perm(half.x, half.y, selector_) : __byte_perm(half.z, half.w, selector_);
  }

  int pair_;
  uint32_t codes_, scales_, tile_scales_, selector_;
  uint32_t even_scales_, odd_scales_, next_even_scales_, next_odd_scales_;
  uint4 even_[2], odd_[2];
};

// A warpgroup's way through the products of a tile.
template <class Config>
struct Nvfp4Products {
  static constexpr int kBlocks = Config::kDepth / 16;
  static_assert(kBlocks == 4);
  float (&d)[Config::kSums];
  Nvfp4Weights<Config>& weights;
  const Ring<Config::kStages>& ring;
  RingPosition<Config::kStages>& at;
  uint32_t tokens;
  uint32_t fragment[kBlocks][4];

  __device__ __forceinline__ void start() {
    ring.wait_full(at);
    weights.load_scales(at.stage);
    weights.load_codes(at.stage, 0);
    weights.load_codes(at.stage, 1);
    weights.turn_scales();
    weights.decode(0, fragment[0]);
  }
  __device__ __forceinline__ void release(uint32_t stage) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ring.release(stage);
  }
  // One stage. Each block is multiplied while the next one is decoded; the codes of the stage after this one are loaded
  // two blocks before they are needed.
  template <bool kMore>
  __device__ __forceinline__ void stage(int32_t step, uint32_t previous) {
    const uint64_t b = swizzle128_descriptor(tokens + at.stage * Config::kTokenBytes);
    at.advance();
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      ptx::wgmma_fence();
      ptx::WgmmaBf16::mma(d, fragment[block], b + block * kDescriptorK16, step > 0 || block > 0);
      ptx::wgmma_commit();
      if (block + 1 < kBlocks) {
        weights.decode(block + 1, fragment[block + 1]);
      } else if (kMore) {
        weights.turn_scales();
        weights.decode(0, fragment[0]);
      }
      if (kMore && block == 1) {
        ring.wait_full(at);
        weights.load_scales(at.stage);
        weights.load_codes(at.stage, 0);
      }
      if (kMore && block == 2) weights.load_codes(at.stage, 1);
      ptx::wgmma_wait<1>();
      if (block == 0 && step > 0) release(previous);
    }
  }
};

// All products of a tile by one warpgroup. `signal` is called when `signal_step` stages are under way.
template <class Config, class Signal>
__device__ __forceinline__ void multiply_nvfp4_tile(float (&d)[Config::kSums], Nvfp4Weights<Config>& weights,
                                                    const Ring<Config::kStages>& ring,
                                                    RingPosition<Config::kStages>& at, uint32_t tokens, int32_t steps,
                                                    int32_t signal_step, const Signal& signal) {
  Nvfp4Products<Config> products{d, weights, ring, at, tokens, {}};
  products.start();
  uint32_t previous = 0;
  for (int32_t step = 0; step + 1 < steps; ++step) {
    const uint32_t stage = at.stage;
    products.template stage<true>(step, previous);
    if (step == signal_step) signal();
    previous = stage;
  }
  const uint32_t last = at.stage;
  products.template stage<false>(steps - 1, previous);
  if (steps - 1 == signal_step) signal();
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(d);
  products.release(last);
}

// Named barriers of a block: 1 + group among a warpgroup's threads, and the start of the second warpgroup.
constexpr uint32_t kNvfp4GroupBarrier = 1;
constexpr uint32_t kNvfp4StartBarrier = 8;

// A multiplying warpgroup's whole work: finish(tile, pair, d) after the products of each tile.
template <class Config, class Finish>
__device__ __forceinline__ void multiply_nvfp4(const Nvfp4WgmmaPlan& plan, const Ring<Config::kStages>& ring,
                                               const Nvfp4Shared<Config>& shared, int group, const Finish& finish) {
  Nvfp4Weights<Config> weights(shared, group);
  RingPosition<Config::kStages> at;
  float d[Config::kSums];
  const bool lags = Config::kGroups == 2 && plan.lag > 0;
  int32_t signal_step = lags && group == 0 ? plan.lag - 1 : -1;
  if (lags && group == 1) ptx::barrier_sync(kNvfp4StartBarrier, 2 * Config::kWarpgroup);
  for_each_tile(plan, [&](const Nvfp4TilePlace& tile) {
    weights.start_tile(tile);
    multiply_nvfp4_tile<Config>(d, weights, ring, at, shared.tokens, plan.steps, signal_step, [&] {
      ptx::barrier_arrive(kNvfp4StartBarrier, 2 * Config::kWarpgroup);
      signal_step = -1;
    });
    finish(tile, weights.pair(), d);
  });
}

}  // namespace isobit::device
