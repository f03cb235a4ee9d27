// Memory and time on a CUDA device, with the runtime API on the host only.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "device_backend.h"

namespace isobit::cli::cuda {
namespace {

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw std::runtime_error(fmt::format("{}: {}", call, cudaGetErrorString(error)));
}

void select(int32_t device) { check(cudaSetDevice(device), "cudaSetDevice"); }

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  double microseconds_since(const Event& start) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// Twice the L2 cache, so that a memset of it leaves nothing of the operands behind.
size_t flush_bytes(int32_t device) {
  int l2 = 0;
  check(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
  return std::max<size_t>(2 * static_cast<size_t>(l2), size_t{1} << 20);
}

int32_t attribute(int32_t device, cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

// "... Kernel Module  580.159  ...": the first word with a dot and digits only.
std::string driver_build() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  }
  return "";
}

}  // namespace

std::shared_ptr<void> allocate(int32_t device, size_t bytes) {
  select(device);
  void* data = nullptr;
  check(cudaMalloc(&data, std::max<size_t>(bytes, 1)), "cudaMalloc");
  return {data, [](void* memory) { cudaFree(memory); }};
}

void fill(int32_t device, void* data, int byte, size_t bytes) {
  select(device);
  check(cudaMemset(data, byte, bytes), "cudaMemset");
}

void upload(int32_t device, void* data, const void* host, size_t bytes) {
  select(device);
  check(cudaMemcpy(data, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

void download(int32_t device, const void* data, void* host, size_t bytes) {
  select(device);
  check(cudaMemcpy(host, data, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void synchronise(int32_t device) {
  select(device);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

std::vector<double> time_runs(int32_t device, const TimingOptions& options, const std::function<void(void*)>& body) {
  select(device);
  const Stream stream;
  const size_t bytes = flush_bytes(device);
  const std::shared_ptr<void> flush = options.warm ? nullptr : allocate(device, bytes);
  for (int i = 0; i < options.warmup; ++i) body(stream.get());
  std::vector<Event> begin(static_cast<size_t>(options.samples));
  std::vector<Event> end(static_cast<size_t>(options.samples));
  for (size_t i = 0; i < begin.size(); ++i) {
    if (flush) check(cudaMemsetAsync(flush.get(), static_cast<int>(i), bytes, stream.get()), "cudaMemsetAsync");
    begin[i].record(stream.get());
    body(stream.get());
    end[i].record(stream.get());
  }
  check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  std::vector<double> microseconds;
  for (size_t i = 0; i < begin.size(); ++i) microseconds.push_back(end[i].microseconds_since(begin[i]));
  return microseconds;
}

std::string driver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) return "none";
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

DeviceFacts facts(int32_t device) {
  select(device);
  DeviceFacts out;
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  out.name = properties.name;
  out.capability = 10 * properties.major + properties.minor;
  out.driver_build = driver_build();
  check(cudaDriverGetVersion(&out.driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&out.runtime), "cudaRuntimeGetVersion");
  out.multiprocessors = properties.multiProcessorCount;
  out.clock_mhz = attribute(device, cudaDevAttrClockRate) / 1000;
  out.memory_clock_mhz = attribute(device, cudaDevAttrMemoryClockRate) / 1000;
  out.memory_bus_bits = attribute(device, cudaDevAttrGlobalMemoryBusWidth);
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  out.memory_bytes = static_cast<int64_t>(total);
  out.free_bytes = static_cast<int64_t>(free);
  out.l2_bytes = attribute(device, cudaDevAttrL2CacheSize);
  out.shared_bytes_per_block = attribute(device, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  out.error_correction = attribute(device, cudaDevAttrEccEnabled) != 0;
  return out;
}

void copy(int32_t device, void* to, const void* from, size_t bytes, void* stream) {
  select(device);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream)),
        "cudaMemcpyAsync");
}

bool launch(int32_t device, const void* kernel, const LaunchGrid& grid, void** arguments) {
  select(device);
  const cudaError_t error =
      cudaLaunchKernel(kernel, dim3(grid.x, grid.y), dim3(grid.threads), arguments, 0, cudaStreamPerThread);
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();
    return false;
  }
  check(error, "cudaLaunchKernel");
  check(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
  return true;
}

}  // namespace isobit::cli::cuda
