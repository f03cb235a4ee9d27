// nvfp4_linear of few rows, one kernel and no workspace: the pipeline of nvfp4/few_rows.cuh for many weight rows, that
// of nvfp4/chain.cuh for few. Either has two neighbouring outputs of a row of x beside each other in a thread, then
//
//   sums ── * alpha ── bf16 or fp32 ──> global memory
#pragma once

#include "device/ptx/synchronize.cuh"
#include "nvfp4/chain.cuh"
#include "nvfp4/few_rows.cuh"
#include "ops/nvfp4_linear/output.cuh"

namespace isobit::nvfp4_linear::sm90 {

namespace ptx = device::ptx;

struct FewJob {
  device::Nvfp4FewPlan plan;
  device::Nvfp4Operand x;
  Output out;
};

// A thread's sums of eight rows of x from `first_row` on, for a pair of weight rows.
template <class Format>
__device__ __forceinline__ void store_group(const FewJob& job, int first_row, int32_t column, float alpha,
                                            const float* d) {
  if (column >= job.out.columns) return;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int64_t row = first_row + threadIdx.x % 4 * 2 + e;
    if (row < job.x.rows) job.out.store<Format>(row, column, alpha, device::sum_of(d[e]), device::sum_of(d[2 + e]));
  }
}

__device__ __forceinline__ void store_group(const FewJob& job, int first_row, int pair, const float* d) {
  const float alpha = job.out.alpha();
  if (job.out.wide) {
    store_group<numerics::Fp32>(job, first_row, 2 * pair, alpha, d);
  } else {
    store_group<numerics::Bf16>(job, first_row, 2 * pair, alpha, d);
  }
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    nvfp4_linear_few(const __grid_constant__ TensorMap codes, const __grid_constant__ FewJob job) {
  extern __shared__ unsigned char memory[];
  const device::Nvfp4FewShared<Config> shared(ptx::shared_address(memory));
  const device::Ring<Config::kStages> ring(shared.barriers);
  device::Nvfp4FewTokens<Config> tokens;
  const int warp = device::begin_few_rows<Config>(&codes, job.plan, ring, shared, job.x, tokens, [] {});
  if (warp == Config::kWarps) return;
  tokens.unpack(job.x, shared.x, job.plan.steps);
  device::Nvfp4FewWeights<typename Config::Stage> weights(
      shared.stages, shared.decoded + warp * Config::Stage::kDecodedWarp, 8 * warp);
  ptx::barrier_sync(1, 32 * Config::kWarps);  // the multiplying warps
  float d[4 * Config::kGroups] = {};
  device::multiply_few_rows<Config>(job.plan, ring, shared, weights, d);
  const int pair = static_cast<int>(blockIdx.x) * Config::Stage::kPairs + weights.pair();
#pragma unroll
  for (int n = 0; n < Config::kGroups; ++n) store_group(job, 8 * n, pair, d + 4 * n);
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    nvfp4_linear_chain(const __grid_constant__ TensorMap codes, const __grid_constant__ FewJob job) {
  extern __shared__ unsigned char memory[];
  const device::Nvfp4ChainShared<Config> shared(ptx::shared_address(memory));
  if (threadIdx.x == 0) {
    shared.stage_ring().initialise(1);
    shared.slot_ring().initialise(32, 32 * Config::kMultipliers);
  }
  __syncthreads();
  const int warp = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 32, 0);
  if (warp < Config::kDecoders) {
    device::decode_chain<Config>(job.plan, job.x, shared, warp);
  } else if (warp < Config::kWarps) {
    const int multiplier = warp - Config::kDecoders;
    float d[Config::kShare][4] = {};
    device::multiply_chain<Config>(job.plan, shared, multiplier, d);
    const int pair = static_cast<int>(blockIdx.x) * Config::Stage::kPairs + threadIdx.x % 32 / 4;
#pragma unroll
    for (int n = 0; n < Config::kShare; ++n) store_group(job, 8 * (multiplier * Config::kShare + n), pair, d[n]);
  } else if (threadIdx.x % 32 == 0) {
    device::Nvfp4FewCopy<typename Config::Stage, Config::kStages>(&codes, job.plan, shared.stage_ring(), shared.stages)
        .copy_until(job.plan.steps);
  }
}

}  // namespace isobit::nvfp4_linear::sm90
