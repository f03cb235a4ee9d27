// nvfp4_linear with WGMMA: the pipeline of nvfp4/wgmma.cuh, whose thread has two neighbouring outputs of a token
// beside each other, then
//
//   sums ── * alpha ── bf16 or fp32 ──> global memory, two neighbours at a time where they are aligned
//
// Eight lanes store 16 neighbouring outputs of a token: whole sectors.
#pragma once

#include "nvfp4/unpack.cuh"
#include "nvfp4/wgmma.cuh"
#include "ops/nvfp4_linear/output.cuh"

namespace isobit::nvfp4_linear::sm90 {

namespace ptx = device::ptx;

template <int kTokens, int kGroups>
using Config = device::Nvfp4WgmmaConfig<kTokens, kGroups>;

struct Job {
  device::Nvfp4WgmmaPlan plan;
  device::Nvfp4Operand x;
  device::Nvfp4Unpack unpack;
  Output out;
};

__global__ void __launch_bounds__(256) nvfp4_linear_unpack(const __grid_constant__ Job job) {
  ptx::launch_dependents();
  device::unpack_nvfp4_half(job.x, job.unpack, int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
}

template <class Config, class Format>
__device__ __forceinline__ void store_tile(const Job& job, const device::Nvfp4TilePlace& tile, int pair, float alpha,
                                           const float (&d)[Config::kTokens / 2]) {
  const int32_t column = 2 * (tile.row_tile * Config::kPairs + pair);
  if (column >= job.out.columns) return;
  const int64_t first = int64_t{tile.first_token} + threadIdx.x % 4 * 2;
#pragma unroll
  for (int j = 0; j < Config::kTokens / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int64_t token = first + 8 * j + e;
      if (token >= job.unpack.rows) continue;
      job.out.store<Format>(job.unpack.first_row + token, column, alpha, d[4 * j + e], d[4 * j + 2 + e]);
    }
  }
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    nvfp4_linear_wgmma(const __grid_constant__ device::Nvfp4WgmmaMaps maps, const __grid_constant__ Job job) {
  extern __shared__ unsigned char memory[];
  const device::Nvfp4Shared<Config> shared(ptx::shared_address(memory));
  const device::Ring<Config::kStages> ring(shared.barriers);
  if (threadIdx.x == 0) ring.initialise(Config::kGroups * Config::kWarpgroup / 32);
  __syncthreads();
  // From one lane, so that the compiler sees a branch that is uniform in the warp.
  const int warpgroup = __shfl_sync(0xFFFFFFFFu, threadIdx.x / Config::kWarpgroup, 0);
  if (warpgroup == 0) {
    if constexpr (Config::kMovesRegisters) ptx::release_registers<Config::kSpareRegisters>();
    if (threadIdx.x == 0) device::copy_nvfp4(maps, job.plan, ring, shared);
    return;
  }
  if constexpr (Config::kMovesRegisters) ptx::claim_registers<Config::kMultiplyRegisters>();
  const float alpha = job.out.alpha();
  device::multiply_nvfp4<Config>(job.plan, ring, shared, warpgroup - 1,
                                 [&](const device::Nvfp4TilePlace& tile, int pair, const auto& d) {
                                   if (job.out.wide) {
                                     store_tile<Config, numerics::Fp32>(job, tile, pair, alpha, d);
                                   } else {
                                     store_tile<Config, numerics::Bf16>(job, tile, pair, alpha, d);
                                   }
                                 });
}

}  // namespace isobit::nvfp4_linear::sm90
