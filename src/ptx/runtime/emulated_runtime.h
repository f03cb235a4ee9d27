// The interpreter behind core/runtime.h: launch code drives it exactly as it drives a GPU.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/runtime.h"
#include "ptx/engine/machine.h"
#include "ptx/runtime/ptx_library.h"

namespace isobit::ptx {

// Host memory that stands for device memory, with unregistered zones around it, given back with the object.
class DeviceBuffer {
 public:
  DeviceBuffer(Machine& machine, size_t bytes, bool initialised);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* data() const { return data_; }
  size_t size() const { return size_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Machine* machine_;
  std::unique_ptr<std::byte[]> storage_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

struct EmulationOptions {
  int capability = 90;
  int multiprocessors = 4;  // few, so that persistent kernels take several turns on small shapes
  MachineOptions machine{.check_races = true};
};

class EmulatedRuntime final : public Runtime {
 public:
  // `ptx_folder`: where the build wrote the PTX texts of the kernels to be launched.
  EmulatedRuntime(const std::string& ptx_folder, EmulationOptions options);

  Machine& machine() { return machine_; }
  // Everything the launches so far reported. A launch with a finding also returns ISOBIT_DEVICE_ERROR.
  const Report& report() const { return report_; }
  void clear_report() { report_ = {}; }
  uint64_t launches() const { return launches_; }

  // Memory that kernels may use, filled with poison that counts as unwritten; and a copy of host data.
  DeviceBuffer allocate(size_t bytes);
  DeviceBuffer upload(const void* data, size_t bytes);

  int device_count() override { return 1; }
  Status properties(int device, DeviceProperties* out) override;
  Status launch(int device, const void* kernel, const LaunchShape& shape, void** parameters, void* stream) override;
  Status allow_shared_memory(int device, const void* kernel, uint32_t bytes) override;
  Status encode_tensor_map(const TensorMapSpec& spec, TensorMap* out) override;
  Status fill_bytes(int device, void* data, int value, size_t bytes, void* stream) override;
  Status copy_to_host(int device, void* host, const void* data, size_t bytes, void* stream) override;

 private:
  size_t shared_limit() const;

  EmulationOptions options_;
  Machine machine_;
  PtxLibrary library_;
  bool has_texts_;
  Report report_;
  uint64_t launches_ = 0;
  std::map<const void*, uint32_t> allowed_shared_;
};

}  // namespace isobit::ptx
