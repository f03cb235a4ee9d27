// Plain kernels that run the chain of k16 steps with one instruction form each: they show what a device's instructions
// compute, and nothing here is tuned.
#pragma once

#include <cstdint>

#include "device/mma_chains.h"
#include "device/ptx/memory.cuh"
#include "device/ptx/mma_sync.cuh"
#include "device/ptx/synchronize.cuh"
#include "device/ptx/wgmma.cuh"

namespace isobit::device {

// One warp a block; grid (n / 8, m / 16).
template <class Format>
__global__ void __launch_bounds__(32) mma_sync_chain(MmaChains p) {
  const int group = static_cast<int>(threadIdx.x) / 4;
  const int pair = 2 * (static_cast<int>(threadIdx.x) % 4);
  const int row = static_cast<int>(blockIdx.y) * 16 + group;
  const int column = static_cast<int>(blockIdx.x) * 8;
  int at[4];
  float d[4];
  for (int i = 0; i < 4; ++i) {
    at[i] = (row + i / 2 * 8) * p.stride_m + (column + pair + i % 2) * p.stride_n;
    d[i] = p.c[at[i]];
  }
  const auto two = [&](const uint16_t* matrix, int line, int k) {
    return *reinterpret_cast<const uint32_t*>(matrix + static_cast<int64_t>(line) * p.k + k);
  };
  for (int k = pair; k < p.k; k += 16) {
    const uint32_t a[4] = {two(p.a, row, k), two(p.a, row + 8, k), two(p.a, row, k + 8), two(p.a, row + 8, k + 8)};
    ptx::mma_m16n8k16<Format>(d, a, two(p.b, column + group, k), two(p.b, column + group, k + 8));
  }
  for (int i = 0; i < 4; ++i) p.d[at[i]] = d[i];
}

// Shared memory of one k16 step: 8x8 core matrices of 128 bytes without swizzle, the two of a line of eight rows side
// by side.
constexpr uint32_t kCoreBytes = 128;

__device__ inline void store_core_matrices(char* shared, const uint16_t* matrix, int rows, int k, int stride) {
  for (int chunk = static_cast<int>(threadIdx.x); chunk < 2 * rows; chunk += 128) {
    const int row = chunk / 2;
    const int half = chunk % 2;
    const auto* source = reinterpret_cast<const uint4*>(matrix + static_cast<int64_t>(row) * stride + k + 8 * half);
    *reinterpret_cast<uint4*>(shared + (row / 8 * 2 + half) * kCoreBytes + row % 8 * 16) = *source;
  }
}

// Address, distance of the cores along k, distance of the cores along rows, each in units of 16 bytes; no swizzle.
__device__ inline uint64_t core_matrix_descriptor(const void* shared) {
  const uint64_t address = ptx::shared_address(shared) >> 4;
  return address | uint64_t{kCoreBytes >> 4} << 16 | uint64_t{2 * kCoreBytes >> 4} << 32;
}

// One warpgroup a block computes 64 x kN; grid (ceil(n / kN), m / 64). The last column tile is moved back inside the
// matrix: the outputs that two tiles share are the same bytes.
template <class Format, int kN>
__global__ void __launch_bounds__(128) wgmma_chain(MmaChains p) {
  __shared__ alignas(128) char shared_a[64 * 32];
  __shared__ alignas(128) char shared_b[kN * 32];
  const int thread = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(blockIdx.y) * 64;
  const int column = min(static_cast<int>(blockIdx.x) * kN, p.n - kN);
  const int first_row = row + thread / 32 * 16 + thread % 32 / 4;
  const int first_column = column + 2 * (thread % 4);
  const auto at = [&](int i) {
    return (first_row + i / 2 % 2 * 8) * p.stride_m + (first_column + i / 4 * 8 + i % 2) * p.stride_n;
  };
  float d[kN / 2];
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) d[i] = p.c[at(i)];
  for (int k = 0; k < p.k; k += 16) {
    __syncthreads();
    store_core_matrices(shared_a, p.a + static_cast<int64_t>(row) * p.k, 64, k, p.k);
    store_core_matrices(shared_b, p.b + static_cast<int64_t>(column) * p.k, kN, k, p.k);
    ptx::fence_proxy_async_shared();
    __syncthreads();
    ptx::wgmma_pin(d);
    ptx::wgmma_fence();
    ptx::Wgmma<Format>::mma(d, core_matrix_descriptor(shared_a), core_matrix_descriptor(shared_b), 1);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(d);
  }
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) p.d[at(i)] = d[i];
}

}  // namespace isobit::device
