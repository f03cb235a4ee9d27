// Requests to the cache.
#pragma once

namespace isobit::device::ptx {

// Brings the line of a global address into L2; nothing waits for it (PTX ISA 9.7.9.15, prefetch; SM80 and newer).
__device__ __forceinline__ void prefetch_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

}  // namespace isobit::device::ptx
