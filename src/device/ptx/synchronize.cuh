// Synchronisation of warps, blocks and grids.
#pragma once

#include <cstdint>

namespace isobit::device::ptx {

// Named barriers 1 to 15 of a block: `threads` counts both those that wait and those that only arrive, in whole warps
// (PTX ISA 9.7.13.1).
__device__ __forceinline__ void barrier_sync(uint32_t id, uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t id, uint32_t threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// All threads of all blocks of the cluster (PTX ISA 9.7.13.4), and the block's rank in it.
__device__ __forceinline__ void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}
__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Orders this thread's ordinary shared-memory accesses before those of the copy engine and of wgmma
// (PTX ISA 9.7.13.4, fence.proxy.async).
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Programmatic dependent launch (PTX ISA 9.7.13.13): the next grid of the stream may start; waits until the previous
// grid has ended and its writes can be read. Both do nothing in a launch without the attribute, and before SM90.
__device__ __forceinline__ void launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_previous_grid() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace isobit::device::ptx
