// Product of few NVFP4 rows of x with many weight rows, with mma.sync on SM90: bound by the weights' bytes.
//
//   weight codes, scales ── copy engine ──> ring of stages ── registers, decode ──> A of mma.sync (16 weight rows)
//   x ── decoded once by all warps of the block ──> shared memory, all of K ──────> B (8 rows of x)
//
// A block has all rows of x and its own weight rows: one warp copies, every other warp has 16 weight rows, which it
// takes from every stage, and walks K on its own. Rows of a pair 2 i and 2 i + 1 are rows g and g + 8 of a fragment, so
// a thread has the sums of a pair and a row of x beside each other. One accumulator takes the blocks of 16 in ascending
// order, which is the whole of the tensor-core rule; what lies beyond K are zeros, which change no sum. The 16 elements
// of a block lie in another order than in memory, the same in both operands.
#pragma once

#include <cstdint>

#include "device/ptx/mma_sync.cuh"
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
  uint32_t x;  // 512 bytes for 32 elements of K and eight rows; then the next eight
  __device__ __forceinline__ explicit Nvfp4FewShared(uint32_t base) {
    stages = (base + Stage::kAlignment - 1) / Stage::kAlignment * Stage::kAlignment;
    decoded = stages + Config::kStages * Stage::kBytes;
    barriers = decoded + Config::kDecodedBytes;
    x = barriers + Config::kBarrierBytes;
  }
};

// Pairs of blocks of a row of x in shared memory.
__device__ __forceinline__ int32_t few_rows_pairs(int32_t steps) {
  constexpr int32_t kMultiple = kNvfp4MostDepth / 64;
  return (steps + kMultiple - 1) / kMultiple * kMultiple * 2;
}

// A block's start: its ring, and all that the copying warp does. Returns the warp's number; the copying one's is
// kWarps.
template <class Config>
__device__ __forceinline__ int begin_few_rows(const TensorMap* codes, const Nvfp4FewPlan& plan,
                                              const Ring<Config::kStages>& ring, const Nvfp4FewShared<Config>& shared) {
  if (threadIdx.x == 0) ring.initialise(Config::kWarps);
  __syncthreads();
  // From one lane, so that the compiler sees a branch that is uniform in the warp.
  const int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
  if (warp == Config::kWarps && threadIdx.x % 32 == 0) {
    copy_few_rows<typename Config::Stage>(codes, plan, ring, shared.stages);
  }
  return warp;
}

// Decodes x to shared memory, rows and blocks that do not exist as zeros; `thread` of the multiplying ones.
template <class Config>
__device__ __forceinline__ void unpack_few_rows(const Nvfp4Operand& x, uint32_t to, int32_t steps, int thread) {
  constexpr int kStride = 32 * Config::kWarps / Config::kTokens;
  static_assert(32 * Config::kWarps % Config::kTokens == 0);
  constexpr int kAtOnce = Config::kWarps <= 4 ? 4 : Config::kGroups;  // loads under way
  const int32_t pairs = few_rows_pairs(steps);
  const int32_t row = thread % Config::kTokens;
#pragma unroll 1
  for (int32_t pair = thread / Config::kTokens; pair < pairs; pair += kAtOnce * kStride) {
    Nvfp4BlockPair blocks[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) blocks[i].load(x, row, pair + i * kStride);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int32_t at = pair + i * kStride;
      if (at < pairs) blocks[i].store(row % 8, to + (row / 8 * pairs + at) * 512);
    }
  }
}

// A warp's products, its weight rows and all of x: d[n][2 h + e] becomes the sum of row h of the thread's pair and of
// row 8 n + 2 (lane % 4) + e of x.
template <class Config>
__device__ __forceinline__ void multiply_few_rows(const Nvfp4FewPlan& plan, const Ring<Config::kStages>& ring,
                                                  const Nvfp4FewShared<Config>& shared,
                                                  Nvfp4FewWeights<typename Config::Stage>& weights,
                                                  float (&d)[Config::kGroups][4]) {
  using Stage = typename Config::Stage;
  RingPosition<Config::kStages> at;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t group_bytes = few_rows_pairs(plan.steps) * 512;
  uint32_t x = shared.x + nvfp4_chunk(lane / 4, lane % 4);
#pragma unroll 1
  for (int32_t step = 0; step < plan.steps; step += Stage::kSteps) {
    ring.wait_full(at);
    const uint32_t offset = at.stage * Stage::kBytes;
    weights.decode_scales(offset, plan.steps - step);
    weights.for_each_pair(offset, [&](int pair, const uint32_t(&first)[4], const uint32_t(&second)[4]) {
#pragma unroll
      for (int n = 0; n < Config::kGroups; ++n) {
        const uint4 b = ptx::load_shared_4(x + n * group_bytes + pair * 512);
        ptx::mma_m16n8k16<numerics::Bf16>(d[n], first, b.x, b.y);
        ptx::mma_m16n8k16<numerics::Bf16>(d[n], second, b.z, b.w);
      }
    });
    __syncwarp();
    if (lane == 0) ring.release(at.stage);
    at.advance();
    x += Stage::kSteps * 1024;
  }
}

}  // namespace isobit::device
