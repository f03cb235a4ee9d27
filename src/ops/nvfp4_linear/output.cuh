// Where the outputs of nvfp4_linear go, for kernels that have sums of two neighbouring outputs in one thread.
#pragma once

#include <cstdint>

#include "device/elements.cuh"
#include "ops/nvfp4_linear/contract.h"
#include "ops/nvfp4_linear/epilogue.h"

namespace isobit::nvfp4_linear {

struct Output {
  char* data;
  int64_t row_bytes;
  int32_t columns;
  bool pairs;                   // two neighbours lie at a multiple of their size
  bool wide;                    // fp32, else bf16
  const float* x_scale_device;  // or null: x_scale
  const float* weight_scale_device;
  float x_scale, weight_scale;

  __device__ __forceinline__ float alpha() const {
    return alpha_of(x_scale_device != nullptr ? __ldg(x_scale_device) : x_scale,
                    weight_scale_device != nullptr ? __ldg(weight_scale_device) : weight_scale);
  }
  // Outputs `column` and column + 1 of a row.
  template <class Format>
  __device__ __forceinline__ void store(int64_t row, int32_t column, float alpha, float first, float second) const {
    constexpr int64_t kSize = sizeof(typename device::Words<Format>::Element);
    device::store_pair<Format>(data + row * row_bytes + column * kSize, scaled(first, alpha), scaled(second, alpha),
                               pairs, true);
  }
};

inline Output output_of(const Params& p) {
  const int64_t element = dtype_bytes(p.dtype);
  return {static_cast<char*>(p.out),
          p.out_stride * element,
          static_cast<int32_t>(p.columns),
          reinterpret_cast<uintptr_t>(p.out) % static_cast<uint64_t>(2 * element) == 0 && p.out_stride % 2 == 0,
          p.dtype == ISOBIT_FP32,
          p.x_scale.device,
          p.weight_scale.device,
          p.x_scale.value,
          p.weight_scale.value};
}

}  // namespace isobit::nvfp4_linear
