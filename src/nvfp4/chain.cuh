// Product of few NVFP4 rows of x with few weight rows, with mma.sync on SM90: bound by the chain of dependent matrix
// instructions, K / 16 of them, which no split of K may shorten.
//
//   weight codes, scales ── copy engine ──> ring of stages ─┐ decoding warps, a stage each    slots in the order of K
//   x ── read from global memory ───────────────────────────┴──────────────────────────────> [fragments of A | of B]
//   slots ── one multiplying warp for eight rows of x ──> 16 x 8 sums
//
// A block has 16 weight rows, so that as many blocks as possible share the weight. Decoding a stage takes a warp longer
// than multiplying it, so several warps decode, each every kDecoders-th stage, ahead of those that multiply; these do
// nothing but load fragments, half a slot ahead, and multiply.
//   barrier       arrives                        waits
//   filled[slot]  the decoding warp's lanes      the multiplying warps
//   free[slot]    the multiplying warps' lanes   the decoding warp
#pragma once

#include <cstdint>

#include "device/ptx/mbarrier.cuh"
#include "device/ptx/memory.cuh"
#include "device/ptx/mma_sync.cuh"
#include "device/ring.cuh"
#include "numerics/bf16.h"
#include "nvfp4/chain.h"
#include "nvfp4/few_rows_weights.cuh"

namespace isobit::device {

// The block's shared memory, by address.
template <class Config>
struct Nvfp4ChainShared {
  uint32_t stages, slots, decoded, barriers;
  __device__ __forceinline__ explicit Nvfp4ChainShared(uint32_t base) {
    stages = (base + Config::Stage::kAlignment - 1) / Config::Stage::kAlignment * Config::Stage::kAlignment;
    slots = stages + Config::kStages * Config::Stage::kBytes;
    decoded = slots + Config::kSlots * Config::kSlotBytes;
    barriers = decoded + Config::kDecodedBytes;
  }
  __device__ __forceinline__ Ring<Config::kStages> stage_ring() const { return Ring<Config::kStages>(barriers); }
  __device__ __forceinline__ Ring<Config::kSlots> slot_ring() const {
    return Ring<Config::kSlots>(barriers + Ring<Config::kStages>::kBarrierBytes);
  }
};

// A decoding warp's whole work: stages `warp`, warp + kDecoders, ...
template <class Config>
__device__ __forceinline__ void decode_chain(const Nvfp4FewPlan& plan, const Nvfp4Operand& x,
                                             const Nvfp4ChainShared<Config>& shared, int warp) {
  using Stage = typename Config::Stage;
  const Ring<Config::kStages> stages = shared.stage_ring();
  const Ring<Config::kSlots> slots = shared.slot_ring();
  Nvfp4FewWeights<Stage> weights(shared.stages, shared.decoded + warp * Stage::kDecodedWarp, 0);
  const int lane = threadIdx.x % 32;
  RingPosition<Config::kStages> from;
  RingPosition<Config::kSlots> to;
  from.advance(warp);
  to.advance(warp);
  constexpr int32_t kStride = Config::kDecoders * Stage::kSteps;
  Nvfp4BlockPair pairs[Config::kGroups];
  const auto load_x = [&](int32_t step) {
#pragma unroll
    for (int n = 0; n < Config::kGroups; ++n) pairs[n].load(x, 8 * n + lane % 8, step * 2 + lane / 8);
  };
  load_x(warp * Stage::kSteps);
#pragma unroll 1
  for (int32_t step = warp * Stage::kSteps; step < plan.steps; step += kStride) {
    const uint32_t slot = shared.slots + to.stage * Config::kSlotBytes;
    const uint32_t offset = from.stage * Stage::kBytes;
    slots.wait_empty(to);
#pragma unroll
    for (int n = 0; n < Config::kGroups; ++n) {
      pairs[n].store(lane % 8, slot + Config::kWeightBytes + n * Config::kGroupBytes + lane / 8 * 512);
    }
    load_x(step + kStride);
    stages.wait_full(from);
    weights.decode_scales(offset, plan.steps - step);
    weights.for_each_pair(offset, [&](int pair, const auto& decode) {
      uint32_t first[4], second[4];
      decode(first, second);
      const uint32_t fragments = slot + pair * 1024 + lane * 16;
      ptx::store_shared_4(fragments, make_uint4(first[0], first[1], first[2], first[3]));
      ptx::store_shared_4(fragments + 512, make_uint4(second[0], second[1], second[2], second[3]));
    });
    ptx::mbarrier_arrive(slots.full(to.stage));
    __syncwarp();
    if (lane == 0) stages.release(from.stage);
    from.advance(Config::kDecoders);
    to.advance(Config::kDecoders);
  }
}

// What a multiplying warp needs of half a slot.
template <class Config>
struct Nvfp4ChainHalf {
  static constexpr int kPairs = Config::kSlotSteps / 4;  // of blocks
  uint4 a[2 * kPairs], b[kPairs][Config::kShare];

  __device__ __forceinline__ void load_weights(uint32_t fragments, int i) {
    a[i] = ptx::load_shared_4(fragments + i * 512);
  }
  __device__ __forceinline__ void load_x(uint32_t chunks, int pair) {
#pragma unroll
    for (int n = 0; n < Config::kShare; ++n) {
      b[pair][n] = ptx::load_shared_4(chunks + n * Config::kGroupBytes + pair * 512);
    }
  }
  __device__ __forceinline__ void load(uint32_t fragments, uint32_t chunks) {
#pragma unroll
    for (int i = 0; i < 2 * kPairs; ++i) load_weights(fragments, i);
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) load_x(chunks, pair);
  }
  // Multiplies, and loads another half meanwhile: a warp issues in order, so what stands behind two dependent matrix
  // instructions waits for the first. Between any two is time for some others; the synchronisation keeps the compiler
  // from gathering the loads at the end.
  __device__ __forceinline__ void multiply(float (&d)[Config::kShare][4], Nvfp4ChainHalf& next, uint32_t fragments,
                                           uint32_t chunks) const {
#pragma unroll
    for (int i = 0; i < 2 * kPairs; ++i) {
      const uint32_t fragment[4] = {a[i].x, a[i].y, a[i].z, a[i].w};
#pragma unroll
      for (int n = 0; n < Config::kShare; ++n) {
        const uint4& x = b[i / 2][n];
        ptx::mma_m16n8k16<numerics::Bf16>(d[n], fragment, i % 2 == 0 ? x.x : x.z, i % 2 == 0 ? x.y : x.w);
      }
      next.load_weights(fragments, i);
      if (i % 2 == 0) next.load_x(chunks, i / 2);
      __syncwarp();
    }
  }
};

// A multiplying warp's whole work: d[n][2 h + e] is of row h of pair lane / 4, and of row 2 (lane % 4) + e of x in its
// group n.
template <class Config>
__device__ __forceinline__ void multiply_chain(const Nvfp4FewPlan& plan, const Nvfp4ChainShared<Config>& shared,
                                               int multiplier, float (&d)[Config::kShare][4]) {
  constexpr uint32_t kHalfWeights = Config::kWeightBytes / 2;
  constexpr uint32_t kHalfGroup = Config::kGroupBytes / 2;
  const Ring<Config::kSlots> slots = shared.slot_ring();
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t own = Config::kWeightBytes + multiplier * Config::kShare * Config::kGroupBytes;
  const uint32_t first_fragments = shared.slots + lane * 16;
  const uint32_t first_chunks = shared.slots + own + nvfp4_chunk(lane / 4, lane % 4);
  RingPosition<Config::kSlots> at, next;
  next.advance();
  Nvfp4ChainHalf<Config> first, second;
  slots.wait_full(at);
  first.load(first_fragments, first_chunks);
#pragma unroll 1
  for (int32_t left = plan.steps; left > 0; left -= Config::Stage::kSteps) {
    // Known long before it is wanted. Beyond the last slot nothing is filled: what is loaded again is not used.
    const bool more = left > Config::Stage::kSteps;
    const bool filled = slots.test_full(next) || !more;
    const uint32_t slot = at.stage * Config::kSlotBytes;
    const uint32_t next_slot = (more ? next.stage : at.stage) * Config::kSlotBytes;
    first.multiply(d, second, first_fragments + slot + kHalfWeights, first_chunks + slot + kHalfGroup);
    slots.release(at.stage);
    if (!filled) slots.wait_full(next);
    at = next;
    next.advance();
    second.multiply(d, first, first_fragments + next_slot, first_chunks + next_slot);
  }
}

}  // namespace isobit::device
