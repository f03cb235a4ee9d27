// Keeping the blocks of a launch within one lap of each other: some dozen stages, about 25,000 cycles. L2 serves one
// line to many multiprocessors at once only if they ask at about the same time, and a tile that sixteen blocks share
// must not be read from DRAM sixteen times. No result depends on it, and a block that has waited for too long once
// stops waiting, so it cannot hang. A thread of its own asks L2, hence copying never waits for the answer.
#pragma once

#include "device/ptx/mbarrier.cuh"
#include "device/ptx/memory.cuh"
#include "device/ptx/synchronize.cuh"
#include "ops/linear_logp/sm90/config.h"

namespace isobit::linear_logp::sm90 {

struct Pace {
  static constexpr uint32_t kBarrierBytes = 2 * 8;

  uint32_t started;  // barrier: the copying thread has started a lap
  uint32_t allowed;  // barrier: it may start the next one

  __device__ __forceinline__ explicit Pace(uint32_t barriers) : started(barriers), allowed(barriers + 8) {}
  // By one thread, before the block synchronises.
  __device__ __forceinline__ void initialise() const {
    device::ptx::mbarrier_init(started, 1);
    device::ptx::mbarrier_init(allowed, 1);
  }
};

__device__ __forceinline__ void wait_barrier(uint32_t barrier, uint32_t parity) {
  while (!device::ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

// The pacing thread: this block has started a lap that `blocks` blocks have; waits for them while it is patient.
__device__ __forceinline__ void await_blocks(uint32_t* counter, uint32_t blocks, bool* patient) {
  device::ptx::add_relaxed(counter, 1);
  const int64_t start = clock64();
  while (*patient && device::ptx::load_relaxed(counter) < blocks) {
    *patient = clock64() - start < TileConfig::kPatience;
  }
}

// The tile kernel starts while this one runs; its pacing threads wait.
__global__ void __launch_bounds__(kWarpgroup) clear_laps(uint32_t* counters, uint32_t laps) {
  device::ptx::launch_dependents();
  for (uint32_t lap = threadIdx.x; lap < laps; lap += kWarpgroup) counters[lap] = 0;
}

}  // namespace isobit::linear_logp::sm90
