#include "selftest/test/device_emulated.h"

#include <cstring>
#include <stdexcept>

#include "device_backend.h"

namespace isobit::cli {
namespace {

thread_local ptx::EmulatedRuntime* emulated = nullptr;

ptx::EmulatedRuntime& device() {
  if (emulated == nullptr) throw std::runtime_error("no emulated device");
  return *emulated;
}

void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(isobit_last_error());
}

}  // namespace

EmulatedDevice::EmulatedDevice(int capability)
    : runtime_(ISOBIT_BINARY_DIR "/ptx", {.capability = capability, .machine = {.check_races = false}}),
      scope_(&runtime_) {
  emulated = &runtime_;
}

EmulatedDevice::~EmulatedDevice() { emulated = nullptr; }

namespace cuda {

std::shared_ptr<void> allocate(int32_t, size_t bytes) {
  const auto buffer = std::make_shared<ptx::DeviceBuffer>(device().allocate(bytes));
  return {buffer, buffer->data()};
}

void fill(int32_t, void* data, int byte, size_t bytes) { require(device().fill_bytes(0, data, byte, bytes, nullptr)); }

void upload(int32_t, void* data, const void* host, size_t bytes) {
  std::memcpy(data, host, bytes);
  device().machine().mark_initialised(data, bytes);
}

void download(int32_t, const void* data, void* host, size_t bytes) {
  require(device().copy_to_host(0, host, data, bytes, nullptr));
}

void synchronise(int32_t) {}

std::vector<double> time_runs(int32_t, const TimingOptions&, const std::function<void(void*)>& body) {
  body(nullptr);
  return {1.0};
}

DeviceFacts facts(int32_t) {
  DeviceProperties properties;
  require(device().properties(0, &properties));
  DeviceFacts out;
  out.name = properties.name;
  out.capability = properties.capability;
  out.multiprocessors = properties.multiprocessors;
  return out;
}

void copy(int32_t, void* to, const void* from, size_t bytes, void*) { upload(0, to, from, bytes); }

bool launch(int32_t, const void* kernel, const LaunchGrid& grid, void** arguments) {
  LaunchShape shape;
  shape.grid.x = grid.x;
  shape.grid.y = grid.y;
  shape.block.x = grid.threads;
  const Status status = device().launch(0, kernel, shape, arguments, nullptr);
  if (!status.ok() && std::strstr(isobit_last_error(), "no PTX for compute capability") != nullptr) return false;
  require(status);
  return true;
}

std::string driver() { return "interpreter"; }

}  // namespace cuda
}  // namespace isobit::cli
