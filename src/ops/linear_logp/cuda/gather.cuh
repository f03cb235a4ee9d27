// The logits of the targets alone, for calls that need them before or beside the big product: rank, several targets a
// row, shards. One warp takes eight (row, target) pairs and puts their rows and ids into one MMA; the diagonal of the
// result is what it wants. Same chain over k16 groups as the big product, so the same bits.
#pragma once

#include "device/ptx/mma_sync.cuh"
#include "ops/linear_logp/cuda/logit.cuh"
#include "ops/linear_logp/cuda/unit_sum.cuh"

namespace isobit::linear_logp::cuda {

constexpr int kPairsPerWarp = 8;
constexpr int kGatherThreads = 128;
constexpr int kPairsPerBlock = kPairsPerWarp * kGatherThreads / kWarpThreads;

// Elements k + 4 q + {0, 1, 2, 3} of a row, +0 beyond `width`: this lane's share of a k16 group. Which lane has which
// element of the group is free as long as both operands agree, because a step's sum is exact.
struct Quad {
  uint32_t low, high;
};
__device__ __forceinline__ Quad load_quad(const uint16_t* row, int64_t k, int64_t width) {
  uint32_t x[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) x[i] = row != nullptr && k + i < width ? row[k + i] : 0u;
  return {x[0] | x[1] << 16, x[2] | x[3] << 16};
}

template <class Format>
__global__ void __launch_bounds__(kGatherThreads) gather_targets(const __grid_constant__ Job job) {
  const Params& p = job.p;
  const int lane = threadIdx.x % kWarpThreads;
  const int g = lane / 4;
  const int q = lane % 4;
  const int64_t warp = (static_cast<int64_t>(blockIdx.x) * kGatherThreads + threadIdx.x) / kWarpThreads;
  const int64_t pair = warp * kPairsPerWarp + g;
  const int64_t row = pair / p.targets;
  const int64_t k = pair % p.targets;
  const bool exists = row < p.rows;
  const int64_t target = exists ? target_at(p, row, k) : -1;
  const bool here = exists && has_logit(p, target) && target >= p.first_id && target < p.first_id + p.count;

  const uint16_t* a_row = here ? static_cast<const uint16_t*>(p.hidden) + row * p.hidden_stride : nullptr;
  const uint16_t* b_row =
      here ? static_cast<const uint16_t*>(p.weight) + (target - p.first_id) * p.weight_stride : nullptr;
  float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int64_t group = 0; group < p.width; group += 16) {
    const Quad a = load_quad(a_row, group + 4 * q, p.width);
    const Quad b = load_quad(b_row, group + 4 * q, p.width);
    const uint32_t a_words[4] = {a.low, 0u, a.high, 0u};
    device::ptx::mma_m16n8k16<Format>(d, a_words, b.low, b.high);
  }
  // Column g of row g.
  if (!exists || q != g / 2) return;
  const float z = here ? logit(p, g % 2 == 0 ? d[0] : d[1], target, temperature_at(p, row)) : 0.0f;
  job.target_logit.data[row * job.target_logit.row_stride + k * job.target_logit.column_stride] =
      numerics::canonical_nan(z);
}

}  // namespace isobit::linear_logp::cuda
