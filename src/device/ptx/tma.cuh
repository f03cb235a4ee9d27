// The tensor copy engine, SM90 and newer (PTX ISA 9.7.9.27).
#pragma once

#include <cstdint>

#include "core/runtime.h"

namespace isobit::device::ptx {

// How long a line is likely to be wanted: the encoded policies that createpolicy.fractional gives for a whole access.
enum class L2Hint : uint64_t {
  kEvictNormal = 0x1000000000000000ull,
  kEvictFirst = 0x12F0000000000000ull,
  kEvictLast = 0x14F0000000000000ull,
};

// Box at element (x, y), x innermost, to shared memory; its bytes count towards the barrier. Elements outside the
// tensor, negative coordinates too, arrive as zeros and count as bytes.
__device__ __forceinline__ void tma_load_2d(uint32_t shared, const TensorMap* map, uint32_t barrier, int32_t x,
                                            int32_t y, L2Hint hint) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "l"(static_cast<uint64_t>(hint))
      : "memory");
}

// The same for a box at (x, y, z).
__device__ __forceinline__ void tma_load_3d(uint32_t shared, const TensorMap* map, uint32_t barrier, int32_t x,
                                            int32_t y, int32_t z, L2Hint hint) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(static_cast<uint64_t>(hint))
      : "memory");
}

// The same to the same place of every block of the cluster whose rank is a bit of `blocks`, and to its barrier.
__device__ __forceinline__ void tma_multicast_2d(uint32_t shared, const TensorMap* map, uint32_t barrier, int32_t x,
                                                 int32_t y, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(blocks)
      : "memory");
}
__device__ __forceinline__ void tma_multicast_3d(uint32_t shared, const TensorMap* map, uint32_t barrier, int32_t x,
                                                 int32_t y, int32_t z, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
      : "memory");
}

// `bytes` consecutive bytes, a multiple of 16 at addresses that are multiples of 16 (PTX ISA 9.7.9.25.4.1).
__device__ __forceinline__ void bulk_load(uint32_t shared, const void* global, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared),
               "l"(global), "r"(bytes), "r"(barrier)
               : "memory");
}

// Brings the descriptor itself into the cache.
__device__ __forceinline__ void tma_prefetch(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace isobit::device::ptx
