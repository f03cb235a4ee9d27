// A warpgroup's way through the products of tiles whose stages are whole rounds of the ring: every place is known where
// it is used, and the loop does no arithmetic about them. Otherwise as Nvfp4Products (wgmma.cuh).
#pragma once

#include <cstdint>

#include "device/ptx/wgmma.cuh"
#include "device/ptx/wgmma_registers.cuh"
#include "device/ptx/wgmma_registers_wide.cuh"
#include "device/ring.cuh"
#include "device/wgmma_descriptor.h"
#include "nvfp4/wgmma.h"
#include "nvfp4/wgmma_weights.cuh"

namespace isobit::device {

template <class Config, int kTokens>
struct Nvfp4Rounds {
  static constexpr int kStages = Config::kStages;
  static_assert(Config::kDepth == 64 && kStages == 4);
  float (&d)[kTokens / 2];
  Nvfp4Weights<Config>& weights;
  const Ring<kStages>& ring;
  RingPosition<kStages>& at;  // the start of a round
  uint32_t tokens;
  bool arrived;  // the stage after the one that is multiplied
  uint32_t fragment[4][4];

  __device__ __forceinline__ RingPosition<kStages> place(int ahead) const {
    return {static_cast<uint32_t>(ahead % kStages), ahead < kStages ? at.parity : at.parity ^ 1};
  }
  __device__ __forceinline__ void load_stage_start(uint32_t offset) {
    weights.load_packed_scales(offset);
    weights.load_codes(offset, 0);
  }
  __device__ __forceinline__ void load_stage_rest(uint32_t offset) {
    weights.decode_scales();
    weights.load_scales();
    weights.load_codes(offset, 1);
  }
  // Blocks 2 half and 2 half + 1, one group.
  __device__ __forceinline__ void multiply_half(int half, uint64_t b, bool accumulate) {
    ptx::wgmma_fence();
#pragma unroll
    for (int block = 2 * half; block < 2 * half + 2; ++block) {
      ptx::wgmma_bf16(d, fragment[block], b + block * kDescriptorK16, accumulate || block > 0);
    }
    ptx::wgmma_commit();
  }
  __device__ __forceinline__ void decode_half(int half) {
    weights.decode(2 * half, fragment[2 * half]);
    weights.decode(2 * half + 1, fragment[2 * half + 1]);
  }
  __device__ __forceinline__ void release(uint32_t stage) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ring.release(stage);
  }
  __device__ __forceinline__ void start() {
    ring.wait_full(at);
    load_stage_start(0);
    load_stage_rest(0);
    decode_half(0);
    arrived = false;
  }
  // Begins where the tile before, of another size, has stopped.
  template <class Other>
  __device__ __forceinline__ void go_on_from(const Other& other) {
    arrived = other.arrived;
    copy_fragments(other.fragment, fragment);
  }
  // After each wait the group before is done, and its fragments and stage are free. Without `more` nothing follows the
  // stage: what is loaded and decoded then is never used.
  template <int kAt>
  __device__ __forceinline__ void stage(bool accumulate, bool more) {
    constexpr uint32_t kNextOffset = (kAt + 1) % kStages * Config::kWeightBytes;
    const uint64_t b = swizzle128_descriptor(tokens + kAt * Config::kTokenBytes);
    multiply_half(0, b, accumulate);
    ptx::wgmma_wait<1>();
    if (kAt > 0 || accumulate) release((kAt + kStages - 1) % kStages);
    if (more && !arrived) ring.wait_full(place(kAt + 1));
    load_stage_start(kNextOffset);
    decode_half(1);
    load_stage_rest(kNextOffset);
    multiply_half(1, b, true);
    arrived = ring.test_full(place(kAt + 2));
    ptx::wgmma_wait<1>();
    decode_half(0);
  }
  // All of a tile. `last`: of the block.
  __device__ __forceinline__ void tile(int32_t steps, bool last) {
#pragma unroll 1
    for (int32_t left = steps; left > 0; left -= kStages) {
      stage<0>(left < steps, true);
      stage<1>(true, true);
      stage<2>(true, true);
      stage<3>(true, !last || left > kStages);
      at.parity ^= 1;
    }
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(d);
    release(kStages - 1);
  }
};

}  // namespace isobit::device
