// Product of few NVFP4 rows of x with many weight rows on SM90: bound by the weights' bytes and their decoding.
//
//   weight codes, scales ── copy engine ──> ring of stages ── registers, decode ──> A of a matrix instruction
//   x ── decoded once by all warps of the block ──> shared memory, all of K ──────> B (all rows of x)
//
// A block has all rows of x and its own weight rows: one warp copies, every other warp has 16 weight rows, which it
// takes from every stage. Up to 8 rows of x go to mma.sync, and a warp walks K on its own; more go to WGMMA, whose four
// warps keep together. The rule of both is the same. Rows of a pair 2 i and 2 i + 1 are rows g and g + 8 of a fragment,
// so a thread has the sums of a pair and a row of x beside each other. One accumulator takes the blocks of 16 in
// ascending order, which is the whole of the tensor-core rule; what lies beyond K are zeros, which change no sum. The
// 16 elements of a block lie in another order than in memory, the same in both operands.
#pragma once

#include <cstdint>

#include "device/ptx/mma_sync.cuh"
#include "device/ptx/synchronize.cuh"
#include "device/ptx/wgmma.cuh"
#include "device/ptx/wgmma_registers.cuh"
#include "device/wgmma_descriptor.h"
#include "numerics/bf16.h"
#include "nvfp4/few_rows_weights.cuh"

namespace isobit::device {

// The block's shared memory, by address.
template <class Config>
struct Nvfp4FewShared {
  using Stage = typename Config::Stage;
  uint32_t stages;
  uint32_t decoded;  // scales, of every warp
  uint32_t barriers;
  // mma.sync: 512 bytes for 32 elements of K and eight rows, and so on along K; then the next eight rows. WGMMA: for 64
  // elements of K all rows of 128 bytes, in the swizzle.
  uint32_t x;
  __device__ __forceinline__ explicit Nvfp4FewShared(uint32_t base) {
    stages = (base + Stage::kAlignment - 1) / Stage::kAlignment * Stage::kAlignment;
    decoded = stages + Config::kStages * Stage::kBytes;
    barriers = decoded + Config::kDecodedBytes;
    x = (barriers + Config::kBarrierBytes + Stage::kAlignment - 1) / Stage::kAlignment * Stage::kAlignment;
  }
};

// Pairs of blocks of a row of x in shared memory.
__device__ __forceinline__ int32_t few_rows_pairs(int32_t steps) {
  constexpr int32_t kMultiple = kNvfp4MostDepth / 64;
  return (steps + kMultiple - 1) / kMultiple * kMultiple * 2;
}

// A thread's share of x on its way from global to shared memory; of the multiplying ones.
template <class Config>
class Nvfp4FewTokens {
 public:
  // Starts loading. Before the weights: what is asked for behind them arrives behind a whole ring of stages.
  __device__ __forceinline__ void start(const Nvfp4Operand& x) { load(x, threadIdx.x / kRows); }

  // Decodes all of x, rows and blocks that do not exist as zeros.
  __device__ __forceinline__ void unpack(const Nvfp4Operand& x, uint32_t to, int32_t steps) {
    const int32_t pairs = few_rows_pairs(steps);
    int32_t pair = threadIdx.x / kRows;
    store(to, pairs, pair);
#pragma unroll 1
    for (pair += kPairsAtOnce * kStride; pair < pairs; pair += kPairsAtOnce * kStride) {
      load(x, pair);
      store(to, pairs, pair);
    }
    if constexpr (Config::kWgmma) ptx::fence_proxy_async_shared();
  }

 private:
  // A warp asks for at least 32 neighbouring bytes of a row.
  static constexpr int kRows = Config::kTokens < 16 ? Config::kTokens : 16;
  static constexpr int kRowGroups = Config::kTokens / kRows;
  static constexpr int kStride = 32 * Config::kWarps / kRows;
  static constexpr int kPairsAtOnce = Config::kWarps <= 4 ? 4 / kRowGroups : kRows / 8;
  static_assert(32 * Config::kWarps % kRows == 0 && Config::kTokens % kRows == 0);

  __device__ __forceinline__ void load(const Nvfp4Operand& x, int32_t pair) {
    static_assert(kStride % 2 == 0);  // whole tiles of scales
    const int32_t next = x.layout == numerics::ScaleLayout::k128x4 ? kStride / 2 * 512
                         : x.layout == numerics::ScaleLayout::k8x4 ? kStride / 2 * 32
                                                                   : kStride * 2;
#pragma unroll
    for (int j = 0; j < kRowGroups; ++j) {
      const auto row = static_cast<int32_t>(threadIdx.x % kRows) + j * kRows;
      const uint8_t* const scales = x.scales + numerics::scale_offset(x.layout, row, 2 * pair, x.blocks);
#pragma unroll
      for (int i = 0; i < kPairsAtOnce; ++i) blocks_[i][j].load(x, row, pair + i * kStride, scales + i * next);
    }
  }
  __device__ __forceinline__ void store(uint32_t to, int32_t pairs, int32_t pair) const {
    const uint32_t row = threadIdx.x % kRows;
#pragma unroll
    for (int i = 0; i < kPairsAtOnce; ++i, pair += kStride) {
      if (pair >= pairs) break;
#pragma unroll
      for (int j = 0; j < kRowGroups; ++j) {
        const uint32_t token = row + j * kRows;
        if constexpr (Config::kWgmma) {
          blocks_[i][j].store_swizzled(row % 8, to + (pair / 2 * Config::kTokens + token) * 128, pair % 2 * 4);
        } else {
          blocks_[i][j].store(row % 8, to + (token / 8 * pairs + pair) * 512);
        }
      }
    }
  }

  Nvfp4BlockPair blocks_[kPairsAtOnce][kRowGroups];
};

// A block's start: its ring, x under way, and all that the copying warp does, `meanwhile` when it has filled the ring
// for the first time. Returns the warp's number; the copying one's is kWarps.
template <class Config, class Meanwhile>
__device__ __forceinline__ int begin_few_rows(const TensorMap* codes, const Nvfp4FewPlan& plan,
                                              const Ring<Config::kStages>& ring, const Nvfp4FewShared<Config>& shared,
                                              const Nvfp4Operand& x, Nvfp4FewTokens<Config>& tokens,
                                              const Meanwhile& meanwhile) {
  using Stage = typename Config::Stage;
  constexpr uint32_t kBegin = 2;  // a barrier of all threads
  // From one lane, so that the compiler sees a branch that is uniform in the warp.
  const int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
  if (warp < Config::kWarps) {
    tokens.start(x);
    ptx::barrier_sync(kBegin, Config::kThreads);
    return warp;
  }
  const bool copies = threadIdx.x % 32 == 0;
  if (copies) {
    ptx::tma_prefetch(codes);
    ring.initialise(Config::kWarps);
  }
  __syncwarp();
  // Weights wait until x has been asked for, which would arrive behind a whole ring of them, unless that is short.
  if constexpr (Config::kStages * Stage::kBytes > kNvfp4ShortRing) {
    ptx::barrier_sync(kBegin, Config::kThreads);
  } else {
    ptx::barrier_arrive(kBegin, Config::kThreads);
  }
  Nvfp4FewCopy<Stage, Config::kStages> copy(codes, plan, ring, shared.stages);
  if (copies) copy.copy_until(min(plan.steps, Config::kStages * Stage::kSteps));
  __syncwarp();
  meanwhile();
  __syncwarp();
  if (copies) copy.copy_until(plan.steps);
  return warp;
}

// Calls body(s) for the stages of K, their scales decoded: s is the place in the ring. Blocks of many weight rows loop
// over whole rounds, so that a stage's addresses are constants; the others end before so much code has been fetched.
template <class Config, class Body>
__device__ __forceinline__ void for_each_few_stage(const Nvfp4FewPlan& plan, const Ring<Config::kStages>& ring,
                                                   Nvfp4FewWeights<typename Config::Stage>& weights, const Body& body) {
  using Stage = typename Config::Stage;
  constexpr uint32_t kUnrolled = Stage::kRows > 64 ? Config::kStages : 1;
  RingPosition<Config::kStages> at;
#pragma unroll 1
  for (int32_t left = plan.steps; left > 0;) {
#pragma unroll
    for (uint32_t i = 0; i < kUnrolled; ++i, left -= Stage::kSteps) {
      if (left <= 0) break;
      const uint32_t s = kUnrolled == 1 ? at.stage : i;
      ring.wait_full({s, at.parity});
      weights.decode_scales(s * Stage::kBytes, left);
      body(s);
      __syncwarp();
      if (threadIdx.x % 32 == 0) ring.release(s);
    }
    if constexpr (kUnrolled == 1) {
      at.advance();
    } else {
      at.parity ^= 1;
    }
  }
}

// A warp's products, its weight rows and all of x: d[4 n + 2 h + e] becomes the sum of row h of the thread's pair and
// of row 8 n + 2 (lane % 4) + e of x.
template <class Config>
__device__ __forceinline__ void multiply_few_rows(const Nvfp4FewPlan& plan, const Ring<Config::kStages>& ring,
                                                  const Nvfp4FewShared<Config>& shared,
                                                  Nvfp4FewWeights<typename Config::Stage>& weights,
                                                  float (&d)[4 * Config::kGroups]) {
  using Stage = typename Config::Stage;
  const uint32_t lane = threadIdx.x % 32;
  if constexpr (Config::kWgmma) {
    constexpr uint64_t kStep = Config::kTokens * 128 / 16;
    uint64_t x = swizzle128_descriptor(shared.x);
    uint32_t fragment[2][2][4];
    for_each_few_stage<Config>(plan, ring, weights, [&](uint32_t s) {
      weights.for_each_pair(s * Stage::kBytes, [&](int pair, const auto& decode) {
        ptx::wgmma_wait<1>();
        decode(fragment[pair % 2][0], fragment[pair % 2][1]);
        const uint64_t b = x + pair / 2 * kStep + pair % 2 * 2 * kDescriptorK16;
        ptx::wgmma_fence();
        ptx::wgmma_bf16(d, fragment[pair % 2][0], b, 1);
        ptx::wgmma_bf16(d, fragment[pair % 2][1], b + kDescriptorK16, 1);
        ptx::wgmma_commit();
      });
      x += Stage::kSteps * kStep;
    });
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(d);
  } else {
    const uint32_t group_bytes = few_rows_pairs(plan.steps) * 512;
    uint32_t x = shared.x + nvfp4_chunk(lane / 4, lane % 4);
    for_each_few_stage<Config>(plan, ring, weights, [&](uint32_t s) {
      weights.for_each_pair(s * Stage::kBytes, [&](int pair, const auto& decode) {
        uint32_t first[4], second[4];
        decode(first, second);
#pragma unroll
        for (int n = 0; n < Config::kGroups; ++n) {
          const uint4 b = ptx::load_shared_4(x + n * group_bytes + pair * 512);
          ptx::mma_m16n8k16<numerics::Bf16>(d + 4 * n, first, b.x, b.y);
          ptx::mma_m16n8k16<numerics::Bf16>(d + 4 * n, second, b.z, b.w);
        }
      });
      x += Stage::kSteps * 1024;
    });
  }
}

}  // namespace isobit::device
