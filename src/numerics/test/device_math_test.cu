// The device side of device_math_test.cpp.
#include <cuda_runtime.h>

#include <cstdint>

#include "device/ptx/convert.cuh"
#include "numerics/test/device_math.h"

namespace isobit::numerics {
namespace {

// The hardware's conversion, in both halves of the pair in turn.
template <Function kFunction>
__device__ uint32_t apply_hardware(uint32_t bits) {
  const float x = bits_float(bits);
  const bool high = bits % 2 != 0;
  const float even = high ? 1.0f : x;
  const float odd = high ? x : 1.0f;
  if constexpr (kFunction == Function::kBf16) {
    return device::ptx::bf16x2_from_floats(even, odd) >> (high ? 16 : 0) & 0xFFFFu;
  } else if constexpr (kFunction == Function::kFp16) {
    return device::ptx::fp16x2_from_floats(even, odd) >> (high ? 16 : 0) & 0xFFFFu;
  } else if constexpr (kFunction == Function::kE4m3) {
    return device::ptx::e4m3x2_from_floats(even, odd) >> (high ? 8 : 0) & 0xFFu;
  } else if constexpr (kFunction == Function::kFp16ToFloat) {
    return float_bits(device::ptx::float_from_fp16(static_cast<uint16_t>(bits)));
  } else {
    return 0;
  }
}

template <Function kFunction, bool kHardware>
__global__ void evaluate(uint32_t first, uint32_t count, uint32_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  out[i] = kHardware ? apply_hardware<kFunction>(first + i) : apply<kFunction>(first + i);
}

template <int kFunction = 0>
void launch(Function function, bool hardware, uint32_t first, uint32_t count, uint32_t* out) {
  if constexpr (kFunction < static_cast<int>(Function::kCount)) {
    constexpr Function kThis = static_cast<Function>(kFunction);
    if (function != kThis) return launch<kFunction + 1>(function, hardware, first, count, out);
    const uint32_t blocks = (count + 255) / 256;
    if (hardware) {
      evaluate<kThis, true><<<blocks, 256>>>(first, count, out);
    } else {
      evaluate<kThis, false><<<blocks, 256>>>(first, count, out);
    }
  }
}

}  // namespace

const char* evaluate_on_device(Function function, bool hardware, uint32_t first, uint32_t count, uint32_t* out) {
  const size_t bytes = count * sizeof(uint32_t);
  uint32_t* device_out = nullptr;
  cudaError_t status = cudaMalloc(&device_out, bytes);
  if (status == cudaSuccess) status = cudaMemset(device_out, 0xA5, bytes);
  if (status == cudaSuccess) {
    launch(function, hardware, first, count, device_out);
    status = cudaGetLastError();
  }
  if (status == cudaSuccess) status = cudaMemcpy(out, device_out, bytes, cudaMemcpyDeviceToHost);
  cudaFree(device_out);
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

}  // namespace isobit::numerics
