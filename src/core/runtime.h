// The one door between host code and whatever executes device code: the CUDA runtime, the PTX interpreter, or nothing
// (a build or a machine without CUDA). Launch code is written once against this interface.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace isobit {

struct DeviceProperties {
  char name[128] = "";
  int capability = 0;  // major * 10 + minor
  int multiprocessors = 0;
  size_t shared_bytes_per_block = 0;  // opt-in maximum
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

struct LaunchShape {
  Dim3 grid, block, cluster;
  uint32_t dynamic_shared_bytes = 0;
  bool programmatic = false;  // may start while the previous kernel of the stream ends (griddepcontrol)
};

// Arguments of cuTensorMapEncodeTiled in its own terms; enumerators have the driver's values.
struct TensorMapSpec {
  enum class Type : int32_t { kUint8 = 0, kUint16 = 1, kUint32 = 2, kFp16 = 6, kFp32 = 7, kBf16 = 9 };
  enum class Swizzle : int32_t { kNone = 0, k32 = 1, k64 = 2, k128 = 3 };
  enum class L2Promotion : int32_t { kNone = 0, k64 = 1, k128 = 2, k256 = 3 };
  Type type = Type::kBf16;
  uint32_t rank = 2;
  const void* address = nullptr;
  uint64_t shape[5] = {};         // elements, innermost first
  uint64_t stride_bytes[4] = {};  // of dimensions 1 and up
  uint32_t box[5] = {};
  Swizzle swizzle = Swizzle::k128;
  L2Promotion l2_promotion = L2Promotion::k256;
};

struct alignas(64) TensorMap {
  unsigned char opaque[128];
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual int device_count() = 0;
  virtual Status properties(int device, DeviceProperties* out) = 0;
  // Launches on `device` whatever the caller's current device is, and restores that. `kernel` is the address of the
  // __global__ function's host stub; `parameters` points to the arguments in order.
  virtual Status launch(int device, const void* kernel, const LaunchShape& shape, void** parameters, void* stream) = 0;
  // One-time attribute of a kernel that needs more than 48 KB of dynamic shared memory. Idempotent and cheap, called
  // by the workspace query as well, so that a graph capture never meets it first.
  virtual Status allow_shared_memory(int device, const void* kernel, uint32_t bytes) = 0;
  virtual Status encode_tensor_map(const TensorMapSpec& spec, TensorMap* out) = 0;
  virtual Status fill_bytes(int device, void* data, int value, size_t bytes, void* stream) = 0;
  virtual Status copy_to_host(int device, void* host, const void* data, size_t bytes,
                              void* stream) = 0;  // synchronises
};

// The runtime of this thread: CUDA, or the one that a ScopedRuntime put in its place.
Runtime& runtime();

// What the build provides: cuda_runtime.cpp or no_cuda.cpp.
Runtime& default_runtime();

// Puts another runtime in place for this thread (tests: the PTX interpreter, mocked devices).
class ScopedRuntime {
 public:
  explicit ScopedRuntime(Runtime* replacement);
  ~ScopedRuntime();
  ScopedRuntime(const ScopedRuntime&) = delete;
  ScopedRuntime& operator=(const ScopedRuntime&) = delete;

 private:
  Runtime* previous_;
};

}  // namespace isobit
