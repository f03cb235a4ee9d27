// A runtime for tests of dispatch: devices that run nothing, and a record of what was launched on them.
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
  std::vector<int> capabilities = {90, 90};  // of device 0, 1, ...
  std::vector<Launch> launches;

  int device_count() override { return static_cast<int>(capabilities.size()); }
  Status properties(int device, DeviceProperties* out) override {
    if (device < 0 || device >= device_count()) return fail(ISOBIT_DEVICE_ERROR, "device: no ordinal %d", device);
    out->capability = capabilities[static_cast<size_t>(device)];
    const bool data_centre = out->capability == 90 || out->capability / 10 == 10 || out->capability == 110;
    out->shared_bytes_per_block = data_centre ? 227 * 1024 : 99 * 1024;
    out->multiprocessors = 132;
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
