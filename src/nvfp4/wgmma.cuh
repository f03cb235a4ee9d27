// Product of two NVFP4 matrices with WGMMA on SM90: weights are decoded in registers, x comes decoded.
//
//   x (bf16, unpacked once) ── copy engine ──> [tokens x 64]  ──────────────────────────────> B of wgmma
//   weight codes ───────────── copy engine ──> [pairs x 32 B | pairs x 32 B] ─ registers ───> A of wgmma, m64
//   weight scales ──────────── copy engine ──> [128 x 4 B]  ──────────────────────┘ decode
//
// Persistent blocks. Thread 0 copies; every other warpgroup owns 64 weight rows and all tokens of the tile. Weight rows
// come in pairs 2 i and 2 i + 1: both of a pair are rows g and g + 8 of one warp's fragment, so one thread has the sums
// of a pair and a token beside each other. Each k16 step multiplies one block of 16 while later ones are decoded; one
// accumulator takes all blocks in ascending order, which is the whole of the tensor-core rule.
//
// x is unpacked as value * 2^8 (unpack.cuh) and the weight as value * 2^-8 (decode.cuh), so the sums are the true ones.
// The 16 elements of a block lie in another order than in memory, the same in both operands.
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
#include "nvfp4/decode.cuh"
#include "nvfp4/wgmma.h"

namespace isobit::device {

// The block's shared memory, by address.
template <class Config>
struct Nvfp4Shared {
  uint32_t tokens;   // stages of x
  uint32_t weights;  // stages of codes and scales
  uint32_t staging;
  uint32_t scales;             // decoded, of every multiplying warp
  uint32_t barriers;           // of the ring
  uint32_t epilogue_barriers;  // two a group
  __device__ __forceinline__ explicit Nvfp4Shared(uint32_t base) {
    tokens = (base + Config::kAlignment - 1) / Config::kAlignment * Config::kAlignment;
    weights = tokens + Config::kStages * Config::kTokenBytes;
    staging = weights + Config::kStages * Config::kWeightBytes;
    scales = staging + Config::kStagingBytes;
    barriers = scales + Config::kScaleBytes;
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

// A thread's share of its warpgroup's weight rows: pair `pair()` of the tile. A warp has 16 rows, in the order of the
// fragment: the even ones of eight pairs, then the odd ones.
template <class Config>
class Nvfp4Weights {
 public:
  __device__ __forceinline__ Nvfp4Weights(const Nvfp4Shared<Config>& shared, int group) {
    const int lane = threadIdx.x % 32;
    first_pair_ = 32 * group + 8 * (threadIdx.x % Config::kWarpgroup / 32);
    codes_ = shared.weights + pair() * Config::kCodeRow;
    selector_ = 0x4400u + 0x1111u * (lane % 4);
    decoded_ = shared.scales + first_pair_ / 8 * Config::kScaleWarp;
    packed_ = shared.weights + Config::kCodeBytes;
  }
  __device__ __forceinline__ int pair() const { return first_pair_ + threadIdx.x % 32 / 4; }

  // Where this lane's two packed scales of the tile lie in a stage: lane 2 r + h has blocks 2 h and 2 h + 1 of row r.
  __device__ __forceinline__ void start_tile(const Nvfp4TilePlace& tile) {
    const int lane = threadIdx.x % 32;
    const int row = 2 * (tile.row_tile * Config::kPairs % 64 + first_pair_ + lane / 2 % 8) + lane / 16;
    tile_packed_ = packed_ + row / 128 * Config::kScaleTile + row % 32 * 16 + row % 128 / 32 * 4 + lane % 2 * 2;
  }
  // A stage's scales, each decoded once in the warp: loaded packed, then put where load_scales finds them.
  __device__ __forceinline__ void load_packed_scales(uint32_t stage) {
    packed_scales_ = ptx::load_shared_u16(tile_packed_ + stage * Config::kWeightBytes);
  }
  __device__ __forceinline__ void decode_scales() const {
    const uint32_t halves = ptx::fp16x2_from_e4m3x2(packed_scales_);
    const uint2 pairs = {scale_pair(static_cast<uint16_t>(halves)), scale_pair(static_cast<uint16_t>(halves >> 16))};
    __syncwarp();
    ptx::store_shared_2(decoded_ + threadIdx.x % 32 * 8, pairs);
    __syncwarp();
  }
  __device__ __forceinline__ void load_scales() {
    const uint32_t at = decoded_ + threadIdx.x % 32 / 4 * 16;
    even_scales_ = ptx::load_shared_4(at);
    odd_scales_ = ptx::load_shared_4(at + 128);
  }
  // Blocks 2 half and 2 half + 1 of a stage.
  __device__ __forceinline__ void load_codes(uint32_t stage, int half) {
    const uint32_t at = codes_ + stage * Config::kWeightBytes + 16 * half;
    even_[half] = ptx::load_shared_4(at);
    odd_[half] = ptx::load_shared_4(at + Config::kPairs * Config::kCodeRow);
  }
  // The loaded codes of a block as a fragment of A.
  __device__ __forceinline__ void decode(int block, uint32_t (&fragment)[4]) const {
    const uint32_t even = bytes_of(even_[block / 2], block);
    const uint32_t odd = bytes_of(odd_[block / 2], block);
    const uint32_t even_scale = word_of(even_scales_, block);
    const uint32_t odd_scale = word_of(odd_scales_, block);
    fragment[0] = ptx::mul_bf16x2_here(nvfp4_low_codes(even), even_scale);
    fragment[1] = ptx::mul_bf16x2_here(nvfp4_low_codes(odd), odd_scale);
    fragment[2] = ptx::mul_bf16x2_here(nvfp4_high_codes(even), even_scale);
    fragment[3] = ptx::mul_bf16x2_here(nvfp4_high_codes(odd), odd_scale);
  }

 private:
  static __device__ __forceinline__ uint32_t scale_pair(uint16_t scale) {
    const float wide = numerics::mul_rn(ptx::float_from_fp16(scale), 0x1p118f);
    return __byte_perm(__float_as_uint(wide), 0, 0x3232);
  }
  static __device__ __forceinline__ uint32_t word_of(const uint4& words, int i) {
    return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
  }
  // Bytes q and q + 4 of a block, q = lane % 4: elements 2 q, 2 q + 1 and 2 q + 8, 2 q + 9.
  __device__ __forceinline__ uint32_t bytes_of(const uint4& half, int block) const {
    return block % 2 == 0 ? __byte_perm(half.x, half.y, selector_) : __byte_perm(half.z, half.w, selector_);
  }

  int first_pair_;
  uint32_t codes_, packed_, tile_packed_, decoded_, selector_;
  uint16_t packed_scales_;
  uint4 even_scales_, odd_scales_;
  uint4 even_[2], odd_[2];
};

// A warpgroup's way through the products of a tile. A stage's four blocks are multiplied in two groups: while one is
// under way, the blocks of the next are decoded.
template <class Config>
struct Nvfp4Products {
  static_assert(Config::kDepth == 64);
  float (&d)[Config::kSums];
  Nvfp4Weights<Config>& weights;
  const Ring<Config::kStages>& ring;
  RingPosition<Config::kStages>& at;
  uint32_t tokens;
  uint32_t previous;  // stage
  uint32_t fragment[4][4];

  __device__ __forceinline__ void load_stage_start() {
    ring.wait_full(at);
    weights.load_packed_scales(at.stage);
    weights.load_codes(at.stage, 0);
  }
  __device__ __forceinline__ void load_stage_rest() {
    weights.decode_scales();
    weights.load_scales();
    weights.load_codes(at.stage, 1);
  }
  __device__ __forceinline__ void decode_half(int half) {
    weights.decode(2 * half, fragment[2 * half]);
    weights.decode(2 * half + 1, fragment[2 * half + 1]);
  }
  // Blocks 2 half and 2 half + 1; then the group before is done, and its fragments and stage are free.
  __device__ __forceinline__ void multiply_half(int half, uint64_t b, bool accumulate) {
    ptx::wgmma_fence();
#pragma unroll
    for (int block = 2 * half; block < 2 * half + 2; ++block) {
      ptx::WgmmaBf16::mma(d, fragment[block], b + block * kDescriptorK16, accumulate || block > 0);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>();
  }
  __device__ __forceinline__ void release() const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ring.release(previous);
  }
  __device__ __forceinline__ void start() {
    load_stage_start();
    load_stage_rest();
    decode_half(0);
  }
  // One stage. A tile's first and last stage are apart, so that those between them have no branches.
  template <bool kFirst, bool kLast>
  __device__ __forceinline__ void stage() {
    const uint32_t current = at.stage;
    const uint64_t b = swizzle128_descriptor(tokens + current * Config::kTokenBytes);
    at.advance();
    multiply_half(0, b, !kFirst);
    if (!kFirst) release();
    if (!kLast) load_stage_start();
    decode_half(1);
    if (!kLast) load_stage_rest();
    multiply_half(1, b, true);
    if (!kLast) decode_half(0);
    previous = current;
  }
  // All of a tile; signal() when `before` of them are under way, or all but the last one.
  template <class Signal>
  __device__ __forceinline__ void stages(int32_t steps, int32_t before, const Signal& signal) {
    if (steps == 1) {
      signal();
      stage<true, true>();
      return;
    }
    stage<true, false>();
    int32_t step = 1;
#pragma unroll 1
    for (int32_t end = min(before, steps - 1);; end = steps - 1) {
#pragma unroll 1
      for (; step < end; ++step) stage<false, false>();
      signal();
      if (step == steps - 1) break;
    }
    stage<false, true>();
  }
};

// All products of a tile by one warpgroup. `signal` is called when `before` stages are under way.
template <class Config, class Signal>
__device__ __forceinline__ void multiply_nvfp4_tile(float (&d)[Config::kSums], Nvfp4Weights<Config>& weights,
                                                    const Ring<Config::kStages>& ring,
                                                    RingPosition<Config::kStages>& at, uint32_t tokens, int32_t steps,
                                                    int32_t before, const Signal& signal) {
  Nvfp4Products<Config> products{d, weights, ring, at, tokens, 0, {}};
  products.start();
  products.stages(steps, before, signal);
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(d);
  products.release();
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
  bool signals = Config::kGroups == 2 && plan.lag > 0;
  if (signals && group == 1) {
    ptx::barrier_sync(kNvfp4StartBarrier, 2 * Config::kWarpgroup);
    signals = false;
  }
  for_each_tile(plan, [&](const Nvfp4TilePlace& tile) {
    weights.start_tile(tile);
    multiply_nvfp4_tile<Config>(d, weights, ring, at, shared.tokens, plan.steps, signals ? plan.lag : plan.steps, [&] {
      if (signals) ptx::barrier_arrive(kNvfp4StartBarrier, 2 * Config::kWarpgroup);
      signals = false;
    });
    finish(tile, weights.pair(), d);
  });
}

}  // namespace isobit::device
