// The chain of k16 steps with the matrix instruction of one thread (tcgen05.mma, kind f16), for family- and
// architecture-specific targets of SM100, SM103 and SM110: what mma_chains.cuh is for the older instructions.
#pragma once

#include "device/mma_chains.cuh"
#include "device/ptx/mbarrier.cuh"
#include "device/ptx/tcgen05.cuh"
#include "numerics/bf16.h"

namespace isobit::device {

constexpr int kTensorChainRows = 128;
constexpr int kTensorChainColumns = 16;
constexpr uint32_t kTensorChainMemory = 32;  // columns of tensor memory, the fewest that can be had

// fp32 sums, both operands K-major (PTX ISA 9.7.16.4.2, kind f16).
template <class Format>
constexpr uint32_t tensor_chain_instruction() {
  constexpr uint32_t kFormat = std::is_same_v<Format, numerics::Bf16> ? 1 : 0;
  return 1u << 4 | kFormat << 7 | kFormat << 10 | uint32_t{kTensorChainColumns / 8} << 17 |
         uint32_t{kTensorChainRows / 16} << 24;
}

// Four warps a block compute 128 x 16; grid (n / 16, m / 128). Warp w holds rows 32 w to 32 w + 31, one a lane.
template <class Format>
__global__ void __launch_bounds__(128) tensor_chain(MmaChains p) {
  __shared__ alignas(128) char shared_a[kTensorChainRows * 32];
  __shared__ alignas(128) char shared_b[kTensorChainColumns * 32];
  __shared__ alignas(8) uint64_t barrier;
  __shared__ uint32_t address;
  const uint32_t warp = threadIdx.x / 32;
  const int row = static_cast<int>(blockIdx.y) * kTensorChainRows;
  const int column = static_cast<int>(blockIdx.x) * kTensorChainColumns;
  const uint32_t done = ptx::shared_address(&barrier);
  const auto at = [&](int n) { return (row + static_cast<int>(threadIdx.x)) * p.stride_m + (column + n) * p.stride_n; };
  if (warp == 0) {
    ptx::tensor_memory_allocate(ptx::shared_address(&address), kTensorChainMemory);
    ptx::tensor_memory_allocate_no_more();
  }
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(done, 1);
    ptx::mbarrier_init_fence();
  }
  ptx::tensor_fence_before_signal();
  __syncthreads();
  ptx::tensor_fence_after_wait();
  const uint32_t sums = address;
  const uint32_t own = sums + (warp * 32 << 16);
  float d[2][8];
  for (int n = 0; n < kTensorChainColumns; ++n) d[n / 8][n % 8] = p.c[at(n)];
  for (uint32_t half = 0; half < 2; ++half) ptx::tensor_store_8(own + 8 * half, d[half]);
  constexpr uint64_t kVersion = uint64_t{1} << 46;  // of descriptors, SM100 and later
  uint32_t parity = 0;
  for (int k = 0; k < p.k; k += 16, parity ^= 1) {
    store_core_matrices(shared_a, p.a + static_cast<int64_t>(row) * p.k, kTensorChainRows, k, p.k);
    store_core_matrices(shared_b, p.b + static_cast<int64_t>(column) * p.k, kTensorChainColumns, k, p.k);
    ptx::fence_proxy_async_shared();
    ptx::tensor_fence_before_signal();
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::tensor_fence_after_wait();
      ptx::tensor_mma_half(sums, core_matrix_descriptor(shared_a) | kVersion,
                           core_matrix_descriptor(shared_b) | kVersion, tensor_chain_instruction<Format>(), true);
      ptx::tensor_commit(done);
    }
    while (!ptx::mbarrier_try_wait(done, parity)) {
    }
    __syncwarp();
    ptx::tensor_fence_after_wait();
  }
  for (uint32_t half = 0; half < 2; ++half) ptx::tensor_load_8(d[half], own + 8 * half);
  for (int n = 0; n < kTensorChainColumns; ++n) p.d[at(n)] = d[n / 8][n % 8];
  ptx::tensor_fence_before_signal();
  __syncthreads();
  ptx::tensor_fence_after_wait();
  if (warp == 0) ptx::tensor_memory_free(sums, kTensorChainMemory);
}

}  // namespace isobit::device
