// Asynchronous copies of single threads, SM80 and newer (PTX ISA 9.7.9.25.3).
#pragma once

#include <cstdint>

namespace isobit::device::ptx {

// Copies 16 bytes, or fills with zeros if `bytes` is 0. Both addresses are multiples of 16.
__device__ __forceinline__ void copy_async_16(uint32_t shared, const void* global, uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most kPending of this thread's newest groups are under way.
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace isobit::device::ptx
