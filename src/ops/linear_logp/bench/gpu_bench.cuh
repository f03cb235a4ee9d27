// What the GPU benchmarks of the room share: checks, operands, memory, one timed call.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "isobit/linear_logp.h"
#include "numerics/bf16.h"

namespace isobit::linear_logp::bench {

constexpr size_t kFlushBytes = size_t{256} << 20;
constexpr int kFlushes = 4;

inline void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s failed\n", what);
  std::exit(1);
}
inline void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) std::fprintf(stderr, "%s: ", cudaGetErrorString(error));
  require(error == cudaSuccess, what);
}

inline __device__ uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Normal values: real operands, since a product on zeros takes less power and runs faster.
static __global__ void fill_normal(uint16_t* data, int64_t count, float scale, uint64_t seed) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const uint64_t x = mix(mix(static_cast<uint64_t>(i) + seed));
    const float u = (static_cast<float>(x >> 40) + 1.0f) * 0x1p-24f;
    const float v = static_cast<float>(x & 0xFFFFFF) * 0x1p-24f;
    data[i] = isobit::numerics::bf16_from_float(scale * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v));
  }
}

static __global__ void fill_targets(int32_t* data, int64_t count, int64_t vocab) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    data[i] = static_cast<int32_t>(mix(static_cast<uint64_t>(i) + 77) % static_cast<uint64_t>(vocab));
  }
}

template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t count) { require(cudaMalloc(&data_, std::max<int64_t>(count, 1) * sizeof(T)), "cudaMalloc"); }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() const { return static_cast<T*>(data_); }

 private:
  void* data_ = nullptr;
};

inline double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x.size() % 2 != 0 ? x[x.size() / 2] : 0.5 * (x[x.size() / 2 - 1] + x[x.size() / 2]);
}

// Microseconds of one call after a flush of the L2. Several flushes, so that a host that has just slept has queued the
// call before the device is through.
class Timer {
 public:
  Timer() : flush_(kFlushBytes) {
    require(cudaEventCreate(&start_), "cudaEventCreate");
    require(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  ~Timer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  template <class Call>
  double time(Call call) {
    for (int i = 0; i < kFlushes; ++i) {
      require(cudaMemsetAsync(flush_.get(), 0, kFlushBytes, nullptr), "cudaMemsetAsync");
    }
    require(cudaEventRecord(start_, nullptr), "cudaEventRecord");
    call();
    require(cudaEventRecord(stop_, nullptr), "cudaEventRecord");
    require(cudaEventSynchronize(stop_), "cudaEventSynchronize");
    float milliseconds = 0.0f;
    require(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
    return 1e3 * milliseconds;
  }

 private:
  Buffer<unsigned char> flush_;
  cudaEvent_t start_, stop_;
};

inline isobit_tensor view(void* data, isobit_dtype dtype, int64_t rows, int64_t columns = 0) {
  isobit_tensor t = {};
  t.data = data;
  t.dtype = dtype;
  t.device_type = ISOBIT_CUDA;
  t.rank = columns > 0 ? 2 : 1;
  t.shape[0] = rows;
  t.stride[0] = columns > 0 ? columns : 1;
  t.shape[1] = columns;
  t.stride[1] = columns > 0 ? 1 : 0;
  return t;
}

}  // namespace isobit::linear_logp::bench
