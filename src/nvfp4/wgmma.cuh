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
#include <type_traits>

#include "device/ptx/registers.cuh"
#include "device/ptx/synchronize.cuh"
#include "device/ptx/tma.cuh"
#include "device/ptx/wgmma.cuh"
#include "device/ptx/wgmma_registers.cuh"
#include "device/ptx/wgmma_registers_wide.cuh"
#include "device/ring.cuh"
#include "device/wgmma_descriptor.h"
#include "nvfp4/wgmma.h"
#include "nvfp4/wgmma_rounds.cuh"
#include "nvfp4/wgmma_weights.cuh"

namespace isobit::device {

// Calls body(tile, tokens) for the block's tiles; `tokens` is their number as a constant. Neighbouring blocks have
// neighbouring tokens: a weight tile is read from memory once and then from L2.
template <class Config, class Body>
__device__ __forceinline__ void for_each_tile(const Nvfp4WgmmaPlan& plan, const Body& body) {
  const auto full = static_cast<uint32_t>(plan.token_tiles) * static_cast<uint32_t>(plan.row_tiles);
  const uint32_t tiles =
      full + static_cast<uint32_t>(plan.last_token_tiles) * static_cast<uint32_t>(plan.last_row_tiles);
  uint32_t index = blockIdx.x;
  const auto visit = [&](auto tokens, uint32_t begin, uint32_t end, int32_t token_tiles, int32_t first_row_tile) {
    for (; index < end; index += gridDim.x) {
      const uint32_t row_tile = (index - begin) / static_cast<uint32_t>(token_tiles);
      const auto token_tile = static_cast<int32_t>(index - begin - row_tile * static_cast<uint32_t>(token_tiles));
      body(Nvfp4TilePlace{token_tile * tokens(), tokens(), first_row_tile + static_cast<int32_t>(row_tile),
                          index + gridDim.x >= tiles},
           tokens);
    }
  };
  visit(std::integral_constant<int, Config::kTokens>(), 0, full, plan.token_tiles, 0);
  if constexpr (Config::kLastTokens > 0) {
    visit(std::integral_constant<int, Config::kLastTokens>(), full, tiles, plan.last_token_tiles, plan.row_tiles);
  }
}

// One thread's work: fills the ring.
template <class Config>
__device__ __forceinline__ void copy_nvfp4(const Nvfp4WgmmaMaps& maps, const Nvfp4WgmmaPlan& plan,
                                           const Ring<Config::kStages>& ring, const Nvfp4Shared<Config>& shared) {
  RingPosition<Config::kStages> at;
  bool unpacked = false;
  for_each_tile<Config>(plan, [&](const Nvfp4TilePlace& tile, auto tokens) {
    const TensorMap* const x = tokens() == Config::kTokens ? &maps.x : &maps.last_x;
    const int32_t first_pair = tile.row_tile * Config::kPairs;
    for (int32_t step = 0; step < plan.steps; ++step) {
      ring.acquire(at, tokens() * Config::kTokenRow + Config::kWeightBytes);
      const uint32_t full = ring.full(at.stage);
      const uint32_t weights = shared.weights + at.stage * Config::kWeightBytes;
      ptx::tma_load_3d(weights, &maps.codes, full, step * static_cast<int32_t>(Config::kCodeRow), first_pair, 0,
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
      ptx::tma_load_2d(shared.tokens + at.stage * Config::kTokenBytes, x, full, step * Config::kDepth, tile.first_token,
                       ptx::L2Hint::kEvictLast);
      at.advance();
    }
  });
}

// A warpgroup's way through the products of a tile. A stage's four blocks are multiplied in two groups: while one is
// under way, the blocks of the next are decoded. What a stage needs besides its bytes (its descriptor, its place,
// whether it has arrived) is found a stage ahead: a warp's way through the loop is longer than it looks, as little
// hides a latency.
template <class Config, int kTokens>
struct Nvfp4Products {
  static_assert(Config::kDepth == 64);
  float (&d)[kTokens / 2];
  Nvfp4Weights<Config>& weights;
  const Ring<Config::kStages>& ring;
  RingPosition<Config::kStages>& at;  // of the stage that is loaded next
  uint32_t tokens;
  bool arrived;                // the stage at `at`
  uint32_t offset;             // its place among the weights
  uint64_t descriptor;         // of its tokens
  uint64_t b;                  // of the stage that is multiplied
  uint32_t current, previous;  // stages
  uint32_t fragment[4][4];

  // Goes from the stage at `at` to the one after it.
  __device__ __forceinline__ void look_ahead() {
    previous = current;
    current = at.stage;
    b = descriptor;
    at.advance();
    place();
    arrived = ring.test_full(at);
  }
  __device__ __forceinline__ void place() {
    offset = at.stage * Config::kWeightBytes;
    descriptor = swizzle128_descriptor(tokens + at.stage * Config::kTokenBytes);
  }
  __device__ __forceinline__ void load_stage_start() {
    if (!arrived) ring.wait_full(at);
    weights.load_packed_scales(offset);
    weights.load_codes(offset, 0);
  }
  __device__ __forceinline__ void load_stage_rest() {
    weights.decode_scales();
    weights.load_scales();
    weights.load_codes(offset, 1);
  }
  __device__ __forceinline__ void decode_half(int half) {
    weights.decode(2 * half, fragment[2 * half]);
    weights.decode(2 * half + 1, fragment[2 * half + 1]);
  }
  // Blocks 2 half and 2 half + 1.
  __device__ __forceinline__ void multiply_half(int half, bool accumulate) {
    ptx::wgmma_fence();
#pragma unroll
    for (int block = 2 * half; block < 2 * half + 2; ++block) {
      ptx::wgmma_bf16(d, fragment[block], b + block * kDescriptorK16, accumulate || block > 0);
    }
    ptx::wgmma_commit();
  }
  __device__ __forceinline__ void release(uint32_t stage) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ring.release(stage);
  }
  __device__ __forceinline__ void start() {
    arrived = false;
    place();
    load_stage_start();
    load_stage_rest();
    decode_half(0);
    look_ahead();
  }
  // Begins where the tile before, of another size, has stopped.
  template <class Other>
  __device__ __forceinline__ void go_on_from(const Other& other) {
    arrived = other.arrived, offset = other.offset, descriptor = other.descriptor, b = other.b;
    current = other.current, previous = other.previous;
    copy_fragments(other.fragment, fragment);
  }
  // One stage. A tile's first and last stage are apart, so that those between them have no branches. After each wait
  // the group before is done, and its fragments and stage are free.
  template <bool kFirst, bool kLast>
  __device__ __forceinline__ void stage() {
    multiply_half(0, !kFirst);
    ptx::wgmma_wait<1>();
    if (!kFirst) release(previous);
    if (!kLast) load_stage_start();
    decode_half(1);
    if (!kLast) load_stage_rest();
    multiply_half(1, true);
    if (!kLast) look_ahead();
    ptx::wgmma_wait<1>();
    if (!kLast) decode_half(0);
  }
  // All of a tile. Unless it is `last`, the next tile's first stage is loaded and begun with like any other.
  __device__ __forceinline__ void tile(int32_t steps, bool last) {
    if (steps == 1 && last) {
      stage<true, true>();
    } else {
      stage<true, false>();
      const int32_t more = last ? steps - 1 : steps;
#pragma unroll 1
      for (int32_t step = 1; step < more; ++step) stage<false, false>();
      if (last) stage<false, true>();
    }
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(d);
    release(last ? current : previous);
  }
};

template <class Config, int kTokens>
using Nvfp4WayOf = std::conditional_t<Config::kRounds, Nvfp4Rounds<Config, kTokens>, Nvfp4Products<Config, kTokens>>;

// A multiplying warpgroup's whole work: finish(tile, pair, d) after the products of each tile, d of its tokens.
template <class Config, class Finish>
__device__ __forceinline__ void multiply_nvfp4(const Nvfp4WgmmaPlan& plan, const Ring<Config::kStages>& ring,
                                               const Nvfp4Shared<Config>& shared, int group, const Finish& finish) {
  Nvfp4Weights<Config> weights(shared, group);
  RingPosition<Config::kStages> at;
  float d[Config::kTokens / 2];
  Nvfp4WayOf<Config, Config::kTokens> products{d, weights, ring, at, shared.tokens};
  bool started = false;
  for_each_tile<Config>(plan, [&](const Nvfp4TilePlace& tile, auto tokens) {
    weights.start_tile(tile);
    const auto multiply = [&](auto& way, bool last) {
      way.tile(plan.steps, last);
      finish(tile, weights.pair(), way.d);
    };
    if constexpr (tokens() == Config::kTokens) {
      if (!started) products.start();
      started = Config::kFollows;
      multiply(products, tile.last || !Config::kFollows);
    } else {
      float last_d[tokens() / 2];
      Nvfp4WayOf<Config, tokens()> last{last_d, weights, ring, at, shared.tokens};
      if (started) {
        last.go_on_from(products);
      } else {
        last.start();
      }
      started = false;
      multiply(last, true);
    }
  });
}

}  // namespace isobit::device
