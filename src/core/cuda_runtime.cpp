// The CUDA runtime behind core/runtime.h. Host code only; links cudart statically and never libcuda: the one driver
// function it needs comes through cudaGetDriverEntryPointByVersion.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>

#include "core/runtime.h"

namespace isobit {
namespace {

Status check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return Status();
  cudaGetLastError();  // takes the error out of the thread's state: it is reported here
  return fail(ISOBIT_DEVICE_ERROR, "%s: %s (%s)", call, cudaGetErrorName(error), cudaGetErrorString(error));
}

// Makes `device` current for a scope. The caller's device is restored even when a call in between fails.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    status_ = check(cudaGetDevice(&previous_), "cudaGetDevice");
    if (status_.ok() && previous_ != device) {
      status_ = check(cudaSetDevice(device), "cudaSetDevice");
      changed_ = status_.ok();
    }
  }
  ~DeviceGuard() {
    if (changed_) cudaSetDevice(previous_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  Status status() const { return status_; }

 private:
  int previous_ = 0;
  bool changed_ = false;
  Status status_;
};

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// Only success is remembered: what failed once (a driver that could not start) may succeed later.
Status encode_tiled_function(EncodeTiled* function) {
  static std::atomic<EncodeTiled> known = nullptr;
  *function = known.load(std::memory_order_relaxed);
  if (*function != nullptr) return Status();
  void* address = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address, 12000, cudaEnableDefault, &result);
  if (Status s = check(error, "cudaGetDriverEntryPointByVersion(cuTensorMapEncodeTiled)"); !s.ok()) return s;
  if (result != cudaDriverEntryPointSuccess) {
    return fail(ISOBIT_DEVICE_ERROR, "driver: expected cuTensorMapEncodeTiled of CUDA 12.0, got none");
  }
  *function = reinterpret_cast<EncodeTiled>(address);
  known.store(*function, std::memory_order_relaxed);
  return Status();
}

class Cuda final : public Runtime {
 public:
  int device_count() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
    cudaGetLastError();
    return 0;
  }

  // Every call asks, and the runtime takes longer to answer than to launch: the thread keeps its last answer.
  Status properties(int device, DeviceProperties* out) override {
    thread_local int known_device = -1;
    thread_local DeviceProperties known;
    if (device != known_device) {
      cudaDeviceProp properties;
      if (Status s = check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"); !s.ok()) return s;
      std::snprintf(known.name, sizeof known.name, "%.127s", properties.name);
      known.capability = properties.major * 10 + properties.minor;
      known.multiprocessors = properties.multiProcessorCount;
      known.shared_bytes_per_block = properties.sharedMemPerBlockOptin;
      known_device = device;
    }
    *out = known;
    return Status();
  }

  Status launch(int device, const void* kernel, const LaunchShape& shape, void** parameters, void* stream) override {
    DeviceGuard guard(device);
    if (!guard.status().ok()) return guard.status();
    cudaLaunchAttribute attributes[2];
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(shape.grid.x, shape.grid.y, shape.grid.z);
    config.blockDim = dim3(shape.block.x, shape.block.y, shape.block.z);
    config.dynamicSmemBytes = shape.dynamic_shared_bytes;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = attributes;
    if (shape.cluster.x * shape.cluster.y * shape.cluster.z > 1) {
      attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
      attributes[config.numAttrs].val.clusterDim = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
      ++config.numAttrs;
    }
    if (shape.programmatic) {
      attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes[config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
      ++config.numAttrs;
    }
    return check(cudaLaunchKernelExC(&config, kernel, parameters), "cudaLaunchKernelExC");
  }

  Status allow_shared_memory(int device, const void* kernel, uint32_t bytes) override {
    DeviceGuard guard(device);
    if (!guard.status().ok()) return guard.status();
    return check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
                 "cudaFuncSetAttribute(MaxDynamicSharedMemorySize)");
  }

  Status encode_tensor_map(const TensorMapSpec& spec, TensorMap* out) override {
    EncodeTiled encode = nullptr;
    if (Status s = encode_tiled_function(&encode); !s.ok()) return s;
    const cuuint32_t element_strides[5] = {1, 1, 1, 1, 1};
    static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));
    const CUresult result =
        encode(reinterpret_cast<CUtensorMap*>(out), static_cast<CUtensorMapDataType>(spec.type), spec.rank,
               const_cast<void*>(spec.address), spec.shape, spec.stride_bytes, spec.box, element_strides,
               CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(spec.swizzle),
               static_cast<CUtensorMapL2promotion>(spec.l2_promotion), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result == CUDA_SUCCESS) return Status();
    return fail(ISOBIT_DEVICE_ERROR, "cuTensorMapEncodeTiled: expected success, got CUresult %d",
                static_cast<int>(result));
  }

  Status fill_bytes(int device, void* data, int value, size_t bytes, void* stream) override {
    DeviceGuard guard(device);
    if (!guard.status().ok()) return guard.status();
    return check(cudaMemsetAsync(data, value, bytes, static_cast<cudaStream_t>(stream)), "cudaMemsetAsync");
  }

  Status copy_to_host(int device, void* host, const void* data, size_t bytes, void* stream) override {
    DeviceGuard guard(device);
    if (!guard.status().ok()) return guard.status();
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    if (Status s = check(cudaMemcpyAsync(host, data, bytes, cudaMemcpyDeviceToHost, cuda_stream), "cudaMemcpyAsync");
        !s.ok()) {
      return s;
    }
    return check(cudaStreamSynchronize(cuda_stream), "cudaStreamSynchronize");
  }
};

}  // namespace

Runtime& default_runtime() {
  static Cuda instance;
  return instance;
}

}  // namespace isobit
