// Stands in for cuda_runtime.cpp in a build without CUDA: no device, and every request says so.
#include "core/runtime.h"

namespace isobit {
namespace {

class NoCuda final : public Runtime {
 public:
  int device_count() override { return 0; }
  Status properties(int, DeviceProperties*) override { return unavailable(); }
  Status launch(int, const void*, const LaunchShape&, void**, void*) override { return unavailable(); }
  Status allow_shared_memory(int, const void*, uint32_t) override { return unavailable(); }
  Status encode_tensor_map(const TensorMapSpec&, TensorMap*) override { return unavailable(); }
  Status fill_bytes(int, void*, int, size_t, void*) override { return unavailable(); }
  Status copy_to_host(int, void*, const void*, size_t, void*) override { return unavailable(); }

 private:
  static Status unavailable() { return fail(ISOBIT_UNSUPPORTED, "device: this build of isobit has no CUDA"); }
};

}  // namespace

Runtime& default_runtime() {
  static NoCuda instance;
  return instance;
}

}  // namespace isobit
