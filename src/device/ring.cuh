// A ring of shared-memory stages between one thread that has the copy engine fill them and warps that use them up.
// Every stage has two barriers: `full` completes when its bytes have arrived, `empty` when all users have released it.
#pragma once

#include <cstdint>

#include "device/ptx/mbarrier.cuh"

namespace isobit::device {

// Position in the ring: the stage, and the parity of its current round.
template <int kStages>
struct RingPosition {
  uint32_t stage = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  // As many times as that: over what another warpgroup uses.
  __device__ __forceinline__ void advance(uint32_t steps) {
    const uint32_t total = stage + steps;
    parity ^= total / kStages & 1;
    stage = total % kStages;
  }
};

template <int kStages>
class Ring {
 public:
  static constexpr uint32_t kBarrierBytes = 2 * kStages * 8;

  // barriers: shared address of kBarrierBytes, aligned to 8.
  __device__ __forceinline__ explicit Ring(uint32_t barriers) : barriers_(barriers) {}

  // By one thread, before the block synchronises. users: arrivals that release a stage; fillers: that fill it, other
  // than the copy engine.
  __device__ __forceinline__ void initialise(uint32_t users) const { initialise(1, users); }
  __device__ __forceinline__ void initialise(uint32_t fillers, uint32_t users) const {
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(full(stage), fillers);
      ptx::mbarrier_init(empty(stage), users);
    }
    ptx::mbarrier_init_fence();
  }

  __device__ __forceinline__ uint32_t full(uint32_t stage) const { return barriers_ + 8 * stage; }
  __device__ __forceinline__ uint32_t empty(uint32_t stage) const { return barriers_ + 8 * (kStages + stage); }

  // Filling side: waits until the stage is free, and announces its bytes.
  __device__ __forceinline__ void wait_empty(RingPosition<kStages> at) const { wait(empty(at.stage), at.parity ^ 1); }
  __device__ __forceinline__ void acquire(RingPosition<kStages> at, uint32_t bytes) const {
    wait_empty(at);
    ptx::mbarrier_arrive_expect(full(at.stage), bytes);
  }
  // Using side.
  __device__ __forceinline__ void wait_full(RingPosition<kStages> at) const { wait(full(at.stage), at.parity); }
  // Whether wait_full would not wait.
  __device__ __forceinline__ bool test_full(RingPosition<kStages> at) const {
    return ptx::mbarrier_test_wait(full(at.stage), at.parity);
  }
  __device__ __forceinline__ void release(uint32_t stage) const { ptx::mbarrier_arrive(empty(stage)); }

 private:
  static __device__ __forceinline__ void wait(uint32_t barrier, uint32_t parity) {
    while (!ptx::mbarrier_try_wait(barrier, parity)) {
    }
  }

  uint32_t barriers_;
};

}  // namespace isobit::device
