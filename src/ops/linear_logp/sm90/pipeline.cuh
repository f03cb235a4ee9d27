// What both WGMMA schedules share: the block's barriers, turns of the two warpgroups, and one stage of products.
#pragma once

#include "device/ptx/memory.cuh"
#include "device/ptx/registers.cuh"
#include "device/ptx/synchronize.cuh"
#include "device/ptx/tma.cuh"
#include "device/ptx/wgmma.cuh"
#include "device/ring.cuh"
#include "device/tile_order.h"
#include "device/wgmma_descriptor.h"
#include "ops/linear_logp/cuda/slots.cuh"
#include "ops/linear_logp/cuda/unit_sum.cuh"
#include "ops/linear_logp/sm90/config.h"

namespace isobit::linear_logp::sm90 {

namespace ptx = device::ptx;
using cuda::Job;
using cuda::Mode;

// The two warpgroups multiply in turn. Named barrier 1 + g is the turn of warpgroup g: it waits there with all its
// threads, the other arrives. Without turns a group would wait for a stage whole rounds ahead and pass on an old
// parity.
constexpr uint32_t kTurnThreads = 2 * kWarpgroup;
__device__ __forceinline__ void wait_turn(int group) { ptx::barrier_sync(1 + group, kTurnThreads); }
__device__ __forceinline__ void give_turn(int group) { ptx::barrier_arrive(1 + group, kTurnThreads); }

// Products of one stage: kBlocks m64 blocks of A with B, into d[block]. Rows of 128 bytes hold 64 elements along K, or,
// where the operand is transposed, 64 along M or N of one k; then blocks of kTransposedBlock bytes follow each other.
template <class Format, int kTransposedA, int kTransposedB, int kBlocks, int kAccumulators>
__device__ __forceinline__ void multiply_stage(float (&d)[kBlocks][kAccumulators], uint32_t a, uint32_t b,
                                               bool accumulate) {
  constexpr uint64_t kStepA = kTransposedA != 0 ? device::kTransposedK16 : device::kDescriptorK16;
  constexpr uint64_t kStepB = kTransposedB != 0 ? device::kTransposedK16 : device::kDescriptorK16;
  static_assert(kTransposedBlock == 64 * kRowBytes, "an m64 block of A takes as much in both forms");
  const uint64_t a_matrix =
      kTransposedA != 0 ? device::transposed_descriptor(a, kTransposedBlock) : device::swizzle128_descriptor(a);
  const uint64_t b_matrix =
      kTransposedB != 0 ? device::transposed_descriptor(b, kTransposedBlock) : device::swizzle128_descriptor(b);
  // Addresses stay below 2^18, so a step never carries out of the low word, and one addition moves a descriptor.
  const uint32_t a_low = static_cast<uint32_t>(a_matrix);
  const uint32_t b_low = static_cast<uint32_t>(b_matrix);
  const auto with_low = [](uint64_t matrix, uint32_t low) { return (matrix >> 32 << 32) | low; };
#pragma unroll
  for (int m = 0; m < kBlocks; ++m) ptx::wgmma_pin(d[m]);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < kDepth / 16; ++k) {
#pragma unroll
    for (int m = 0; m < kBlocks; ++m) {
      ptx::Wgmma<Format, kTransposedA, kTransposedB>::mma(
          d[m], with_low(a_matrix, a_low + static_cast<uint32_t>(m * device::kDescriptor64Rows + k * kStepA)),
          with_low(b_matrix, b_low + static_cast<uint32_t>(k * kStepB)), k > 0 || accumulate);
    }
  }
  ptx::wgmma_commit();
#pragma unroll
  for (int m = 0; m < kBlocks; ++m) ptx::wgmma_pin(d[m]);
}

// All products of a tile by one warpgroup: stages in ascending order, each released once the next one's products are
// under way. `pass_turn` is called when the last products have been issued. A stage holds A, then B.
template <class Format, int kTransposedA = 0, int kTransposedB = 0, int kStages, int kBlocks, int kAccumulators,
          class PassTurn>
__device__ __forceinline__ void multiply_tile(float (&d)[kBlocks][kAccumulators], const device::Ring<kStages>& ring,
                                              device::RingPosition<kStages>& at, uint32_t stages, uint32_t stage_bytes,
                                              uint32_t a_offset, uint32_t b_offset, int steps, PassTurn pass_turn) {
  const bool leader = threadIdx.x % cuda::kWarpThreads == 0;
  uint32_t previous = 0;
  for (int step = 0; step < steps; ++step) {
    ring.wait_full(at);
    // From one lane: ptxas then keeps descriptors in uniform registers, 80 instructions a stage instead of 111.
    const uint32_t stage = __shfl_sync(cuda::kWarp, stages + at.stage * stage_bytes, 0);
    multiply_stage<Format, kTransposedA, kTransposedB>(d, stage + a_offset, stage + b_offset, step > 0);
    if (step == steps - 1) pass_turn();
    ptx::wgmma_wait<1>();
    if (step > 0 && leader) ring.release(previous);
    previous = at.stage;
    at.advance();
  }
  ptx::wgmma_wait<0>();
#pragma unroll
  for (int m = 0; m < kBlocks; ++m) ptx::wgmma_pin(d[m]);
  if (leader) ring.release(previous);
}

}  // namespace isobit::linear_logp::sm90
