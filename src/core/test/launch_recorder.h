// A runtime for tests of dispatch: devices of one compute capability that run nothing, and a record of what was
// launched on them.
#pragma once

#include <vector>

#include "core/runtime.h"

namespace isobit::test {

class LaunchRecorder final : public Runtime {
 public:
  struct Launch {
    int device;
    const void* kernel;
    LaunchShape shape;
    void* stream;
  };
  int capability = 90;
  std::vector<Launch> launches;

  int device_count() override { return 2; }
  Status properties(int, DeviceProperties* out) override {
    out->capability = capability;
    out->shared_bytes_per_block = 99 * 1024;
    return Status();
  }
  Status launch(int device, const void* kernel, const LaunchShape& shape, void**, void* stream) override {
    launches.push_back({device, kernel, shape, stream});
    return Status();
  }
  Status allow_shared_memory(int, const void*, uint32_t) override { return Status(); }
  Status encode_tensor_map(const TensorMapSpec&, TensorMap*) override { return Status(); }
  Status fill_bytes(int, void*, int, size_t, void*) override { return Status(); }
  Status copy_to_host(int, void*, const void*, size_t, void*) override { return Status(); }
};

}  // namespace isobit::test
