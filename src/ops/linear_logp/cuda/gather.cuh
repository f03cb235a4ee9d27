// The logits of the targets alone, for calls that need them before or beside the big product: rank, several targets a
// row, shards. One warp takes eight (row, target) pairs and puts their rows and ids into one MMA; the diagonal of the
// result is what it wants. Same chain over k16 groups as the big product, so the same bits.
#pragma once

#include "device/ptx/mma_sync.cuh"
#include "device/ptx/synchronize.cuh"
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
template <bool kAligned>
__device__ __forceinline__ Quad load_quad(const uint16_t* row, int64_t k, int64_t width) {
  if constexpr (kAligned) {  // no quad crosses the width
    if (row == nullptr || k >= width) return {0u, 0u};
    const uint2 words = *reinterpret_cast<const uint2*>(row + k);
    return {words.x, words.y};
  } else {
    uint32_t x[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = row != nullptr && k + i < width ? row[k + i] : 0u;
    return {x[0] | x[1] << 16, x[2] | x[3] << 16};
  }
}

// The quads of kGroups k16 groups, all on their way together.
template <bool kAligned>
struct Batch {
  static constexpr int kGroups = kAligned ? 16 : 4;
  Quad a[kGroups], b[kGroups];
  __device__ __forceinline__ void load(const uint16_t* a_row, const uint16_t* b_row, int64_t k, int64_t width) {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      a[i] = load_quad<kAligned>(a_row, k + 16 * i, width);
      b[i] = load_quad<kAligned>(b_row, k + 16 * i, width);
    }
  }
};

// The chains of the warp's eight pairs: d[0], d[1] of lane 4 g + g / 2 hold pair g. The next batch is on its way while
// one is multiplied; the first to be multiplied is empty. Products of zeros leave every sum as it is.
template <class Format, bool kAligned>
__device__ __forceinline__ void multiply_pairs(const uint16_t* a_row, const uint16_t* b_row, int q, int64_t width,
                                               float (&d)[4]) {
  constexpr int kGroups = Batch<kAligned>::kGroups;
  constexpr int kDepth = 16 * kGroups;
  Batch<kAligned> batch{};
#pragma unroll 1
  for (int64_t k = -kDepth; k < width; k += kDepth) {
    Batch<kAligned> next;
    next.load(a_row, b_row, k + kDepth + 4 * q, width);
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const uint32_t a_words[4] = {batch.a[i].low, 0u, batch.a[i].high, 0u};
      device::ptx::mma_m16n8k16<Format>(d, a_words, batch.b[i].low, batch.b[i].high);
    }
    batch = next;
  }
}

template <class Format>
__global__ void __launch_bounds__(kGatherThreads) gather_targets(const __grid_constant__ Job job) {
  device::ptx::launch_dependents();  // the big product needs targets when its first tile is done
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
  const uint64_t places = reinterpret_cast<uintptr_t>(p.hidden) | reinterpret_cast<uintptr_t>(p.weight);
  const uint64_t strides = static_cast<uint64_t>(p.hidden_stride) | static_cast<uint64_t>(p.weight_stride);
  if (places % 8 == 0 && (strides | static_cast<uint64_t>(p.width)) % 4 == 0) {
    multiply_pairs<Format, true>(a_row, b_row, q, p.width, d);
  } else {
    multiply_pairs<Format, false>(a_row, b_row, q, p.width, d);
  }
  // Column g of row g.
  if (!exists || q != g / 2) return;
  const float z = here ? logit(p, g % 2 == 0 ? d[0] : d[1], target, temperature_at(p, row)) : 0.0f;
  job.target_logit.data[row * job.target_logit.row_stride + k * job.target_logit.column_stride] =
      numerics::canonical_nan(z);
}

}  // namespace isobit::linear_logp::cuda
