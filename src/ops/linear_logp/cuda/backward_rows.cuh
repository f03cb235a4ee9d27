// Before and after the products: valid rows are numbered and copied together, segments are added up, and what no
// product touches is written.
#pragma once

#include "device/elements.cuh"
#include "ops/linear_logp/cuda/backward_launch.h"
#include "ops/linear_logp/cuda/backward_row.cuh"
#include "ops/linear_logp/cuda/outputs.cuh"

namespace isobit::linear_logp::cuda {

constexpr int kNumberThreads = 1024;
constexpr int kRowThreads = 256;

__device__ __forceinline__ int64_t warp_number() { return (int64_t{blockIdx.x} * kRowThreads + threadIdx.x) / 32; }

// One block numbers the valid rows: a round of 1,024 rows at a time.
__global__ void __launch_bounds__(kNumberThreads)
    number_rows(const __grid_constant__ Params p, int32_t* valid, int32_t* row_of) {
  __shared__ int32_t in_warp[kNumberThreads / 32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  int32_t before = 0;
  for (int64_t first = 0; first < p.rows; first += kNumberThreads) {
    const int64_t row = first + threadIdx.x;
    const bool here = row < p.rows && row_state(p, row) == RowState::kValid;
    const uint32_t lanes = __ballot_sync(0xFFFFFFFFu, here);
    if (lane == 0) in_warp[warp] = __popc(lanes);
    __syncthreads();
    int32_t number = before + __popc(lanes & ((1u << lane) - 1));
    for (int i = 0; i < kNumberThreads / 32; ++i) {
      number += i < warp ? in_warp[i] : 0;
      before += in_warp[i];
    }
    if (here) row_of[number] = static_cast<int32_t>(row);
    __syncthreads();
  }
  if (threadIdx.x == 0) *valid = before;
}

// The coefficients of dz, one thread a valid row.
__global__ void __launch_bounds__(kRowThreads)
    prepare_rows(const __grid_constant__ BackwardJob job, GradientRow* gradient) {
  const int64_t number = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (number >= *job.valid) return;
  const Params& p = job.p.forward;
  const int64_t row = job.row_of[number];
  const float temperature = temperature_at(p, row);
  const float logp_sum = sum_gradients(
      p.targets, temperature, [&](int64_t k) { return job.p.d_logp.at(row, k); },
      [&](int64_t k) { return has_logit(p, target_at(p, row, k)); });
  gradient[number] = gradient_row(load_record(job.saved, row).row, temperature, logp_sum, job.p.d_lse.at(row),
                                  job.p.d_entropy.at(row), job.p.wants_entropy_gradient);
}

// Hidden states of the valid rows, one warp a row; rows up to the next multiple of kRowPadding and columns beyond H
// are +0, but column H is 1.
__global__ void __launch_bounds__(kRowThreads)
    gather_hidden(const __grid_constant__ BackwardJob job, uint16_t* hidden, bool aligned) {
  constexpr uint16_t kOne = 0x3F80;
  const int64_t number = warp_number();
  const int64_t valid = *job.valid;
  if (number >= (valid + kRowPadding - 1) / kRowPadding * kRowPadding) return;
  const Params& p = job.p.forward;
  const bool exists = number < valid;
  const uint16_t* const from =
      static_cast<const uint16_t*>(p.hidden) + (exists ? job.row_of[number] : 0) * p.hidden_stride;
  uint16_t* const to = hidden + number * job.hidden_stride;
  for (int64_t i = threadIdx.x % 32 * 8; i < job.hidden_stride; i += 32 * 8) {
    if (exists && aligned && i + 8 <= p.width) {
      *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(from + i);
      continue;
    }
    for (int64_t j = i; j < i + 8; ++j) to[j] = !exists ? 0 : j < p.width ? from[j] : j == p.width ? kOne : 0;
  }
}

// dz of the chunk's targets, one thread a row and target: what the product has stored there is that of another id.
template <bool kEntropy>
__global__ void __launch_bounds__(kRowThreads) store_targets(const __grid_constant__ BackwardJob job) {
  const Params& p = job.p.forward;
  const int64_t index = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  const int64_t row = index / p.targets;
  const int64_t number = job.first_row + row;
  if (row >= job.rows || number >= *job.valid) return;
  const int64_t call_row = job.row_of[number];
  const int64_t target = target_at(p, call_row, index % p.targets);
  const int64_t offset = target - p.first_id - job.first_id;
  if (!has_logit(p, target) || offset < 0 || offset >= int64_t{job.slices} * job.slice_ids) return;
  const auto slice = static_cast<int32_t>(offset / job.slice_ids);
  *job.dz_at(static_cast<int32_t>(row), slice, static_cast<int32_t>(offset % job.slice_ids)) =
      target_dot_gradient<kEntropy>(job, job.gradient[number], call_row, target,
                                    job.target_dot[number * p.targets + index % p.targets]);
}

__device__ __forceinline__ void store_gradient(const GradientOutput& to, int64_t offset, float value) {
  if (to.dtype == ISOBIT_FP32) {
    static_cast<float*>(to.data)[offset] = numerics::canonical_nan(value);
  } else {
    static_cast<uint16_t*>(to.data)[offset] = numerics::bf16_from_float(value);
  }
}

// d_hidden of the rows that are not valid, one warp a row.
__global__ void __launch_bounds__(kRowThreads) fill_rows(const __grid_constant__ Params p, GradientOutput to) {
  const int64_t row = warp_number();
  if (row >= p.rows) return;
  const RowState state = row_state(p, row);
  if (state == RowState::kValid) return;
  const float value = state == RowState::kIgnored ? 0.0f : numerics::bits_float(numerics::kNanBits);
  for (int64_t i = threadIdx.x % 32; i < p.width; i += 32) store_gradient(to, row * to.stride + i, value);
}

// d_weight and d_bias of ids from first_id on, one block an id.
__global__ void __launch_bounds__(kRowThreads) clear_ids(const __grid_constant__ BackwardParams p, int64_t first_id) {
  const int64_t id = first_id + blockIdx.x;
  if (p.d_weight.data != nullptr) {
    for (int64_t i = threadIdx.x; i < p.forward.width; i += kRowThreads) {
      store_gradient(p.d_weight, id * p.d_weight.stride + i, 0.0f);
    }
  }
  if (p.d_bias.data != nullptr && threadIdx.x == 0) store_gradient(p.d_bias, id * p.d_bias.stride, 0.0f);
}

// Nodes of the segment tree that wait for their right neighbours, [rows, partial_stride] each, by level above a chunk.
struct WaitingNodes {
  float* level[4];
  int32_t merged;  // of them, from level 0 on, are left neighbours of this chunk
  bool last;       // the chunk ends the tree: d_hidden is written; else the sum goes to level[merged]
};

// The tree over kSlices partial sums, four columns a thread; docs/bit-contract.md section 3.6.
template <int kSlices>
__global__ void __launch_bounds__(kRowThreads)
    add_segments(const __grid_constant__ BackwardJob job, const __grid_constant__ WaitingNodes waiting) {
  const int64_t quads = job.partial_stride / 4;
  const int64_t index = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  const int64_t row = index / quads;
  const int64_t left = int64_t{*job.valid} - job.first_row;
  if (row >= job.rows || row >= left) return;
  const int64_t column = index % quads * 4;
  const int64_t offset = row * job.partial_stride + column;
  const auto add = [](float4 a, float4 b) {
    return make_float4(numerics::add_rn(a.x, b.x), numerics::add_rn(a.y, b.y), numerics::add_rn(a.z, b.z),
                       numerics::add_rn(a.w, b.w));
  };
  float4 sum[kSlices];
#pragma unroll
  for (int i = 0; i < kSlices; ++i) {
    sum[i] = *reinterpret_cast<const float4*>(job.partial + int64_t{i} * job.rows * job.partial_stride + offset);
  }
#pragma unroll
  for (int step = 1; step < kSlices; step *= 2) {
#pragma unroll
    for (int i = 0; i < kSlices; i += 2 * step) sum[i] = add(sum[i], sum[i + step]);
  }
  for (int i = 0; i < waiting.merged; ++i) {
    sum[0] = add(*reinterpret_cast<const float4*>(waiting.level[i] + offset), sum[0]);
  }
  if (!waiting.last) {
    *reinterpret_cast<float4*>(waiting.level[waiting.merged] + offset) = sum[0];
    return;
  }
  const float value[4] = {sum[0].x, sum[0].y, sum[0].z, sum[0].w};
  const int64_t to = job.row_of[job.first_row + row] * job.p.d_hidden.stride + column;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (column + i < job.p.forward.width) store_gradient(job.p.d_hidden, to + i, value[i]);
  }
}

// The tree over the nodes of all parts, one element of d_hidden a thread. Sums that wait for their right neighbours
// stand on a stack, whose places are registers.
__global__ void __launch_bounds__(kRowThreads)
    merge_parts(const __grid_constant__ BackwardParams p, const __grid_constant__ PartNodes list) {
  const int64_t width = p.forward.width;
  const int64_t element = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (element >= p.forward.rows * width) return;
  float stack[kSegmentLevels] = {};
  for (int32_t i = 0; i < list.count; ++i) {
#pragma unroll
    for (int level = kSegmentLevels - 1; level > 0; --level) stack[level] = stack[level - 1];
    stack[0] = list.node[i].sums[element];
    for (int32_t n = 0; n < list.node[i].additions; ++n) {
      stack[0] = numerics::add_rn(stack[1], stack[0]);
#pragma unroll
      for (int level = 1; level + 1 < kSegmentLevels; ++level) stack[level] = stack[level + 1];
    }
  }
  store_gradient(p.d_hidden, element / width * p.d_hidden.stride + element % width, stack[0]);
}

}  // namespace isobit::linear_logp::cuda
