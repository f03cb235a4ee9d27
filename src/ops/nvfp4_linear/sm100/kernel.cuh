// nvfp4_linear with the block-scaled matrix instructions (nvfp4/scaled_tile.cuh): tiles of 128 rows x 256 columns. A
// finishing thread has 128 neighbouring outputs of one row:
//
//   sum -> * alpha -> bf16 or fp32 -> global memory, 16 bytes at a time where they are aligned
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/ptx/convert.cuh"
#include "numerics/bf16.h"
#include "numerics/fp32.h"
#include "nvfp4/scaled_tile.cuh"
#include "ops/nvfp4_linear/epilogue.h"

namespace isobit::nvfp4_linear::sm100 {

using device::ScaledTile;

// What the kernel is told besides the operands; goes to it by value.
struct Job {
  device::ScaledPlan plan;
  const float* x_scale_device;  // or null: x_scale
  const float* weight_scale_device;
  float x_scale, weight_scale;
  char* out;
  int64_t out_row_bytes;
  int64_t rows, columns;
  bool wide;  // out and every row are aligned to 16 bytes
};

__device__ __forceinline__ float read_scale(const float* device, float value) {
  return device != nullptr ? __ldg(device) : value;
}

// 16 bytes of outputs, of which `count` exist; values are final but for their conversion.
template <class Format, int kElements>
__device__ __forceinline__ void store_vector(char* to, const float (&values)[kElements], int64_t count, bool wide) {
  if constexpr (std::is_same_v<Format, numerics::Fp32>) {
    if (wide && count >= kElements) {
      *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
      return;
    }
  } else {
    if (wide && count >= kElements) {
      uint32_t words[kElements / 2];
#pragma unroll
      for (int i = 0; i < kElements; i += 2) words[i / 2] = device::ptx::bf16x2_from_floats(values[i], values[i + 1]);
      *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < kElements; ++i) {
    if (i >= count) return;
    if constexpr (std::is_same_v<Format, numerics::Fp32>) {
      reinterpret_cast<float*>(to)[i] = values[i];
    } else {
      reinterpret_cast<uint16_t*>(to)[i] = Format::from_float(values[i]);
    }
  }
}

template <class Format>
__device__ __forceinline__ void finish(const Job& job, float alpha, int64_t row, int64_t column,
                                       const float (&sums)[ScaledTile::kThreadColumns]) {
  constexpr int kSize = std::is_same_v<Format, numerics::Fp32> ? 4 : 2;
  constexpr int kElements = 16 / kSize;
  if (row >= job.rows) return;
  char* const to = job.out + row * job.out_row_bytes + column * kSize;
#pragma unroll
  for (int i = 0; i < ScaledTile::kThreadColumns; i += kElements) {
    float values[kElements];
#pragma unroll
    for (int j = 0; j < kElements; ++j) values[j] = scaled(sums[i + j], alpha);
    store_vector<Format>(to + i * kSize, values, job.columns - column - i, job.wide);
  }
}

template <class Format, int kBlocks>
__global__ void __launch_bounds__(ScaledTile::kThreads, 1)
    nvfp4_linear_scaled(const __grid_constant__ device::ScaledOperands operands, const __grid_constant__ Job job) {
  extern __shared__ __align__(128) unsigned char shared[];
  device::ScaledPipeline<kBlocks>(shared, job.plan).run(operands, [&] {
    const float alpha =
        alpha_of(read_scale(job.x_scale_device, job.x_scale), read_scale(job.weight_scale_device, job.weight_scale));
    return [&job, alpha](int64_t row, int64_t column, const float(&sums)[ScaledTile::kThreadColumns]) {
      finish<Format>(job, alpha, row, column, sums);
    };
  });
}

}  // namespace isobit::nvfp4_linear::sm100
