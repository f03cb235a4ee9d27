#include "device.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>

#include "device_backend.h"

namespace isobit::cli {
namespace {

constexpr size_t kAlignment = 256;

std::shared_ptr<void> allocate_on_host(size_t bytes) {
  const size_t rounded = std::max<size_t>((bytes + kAlignment - 1) / kAlignment, 1) * kAlignment;
  void* data = std::aligned_alloc(kAlignment, rounded);
  if (data == nullptr) throw std::runtime_error("out of memory");
  return {data, std::free};
}

}  // namespace

Buffer::Buffer(Place place, size_t bytes)
    : place_(place),
      bytes_(bytes),
      memory_(place.type == ISOBIT_CPU ? allocate_on_host(bytes) : cuda::allocate(place.id, bytes)) {}

void Buffer::fill(int byte) const {
  if (place_.type == ISOBIT_CPU) {
    std::memset(data(), byte, bytes_);
  } else {
    cuda::fill(place_.id, data(), byte, bytes_);
  }
}

void Buffer::upload(const void* host, size_t bytes) const {
  if (bytes == 0) return;
  if (place_.type == ISOBIT_CPU) {
    std::memcpy(data(), host, bytes);
  } else {
    cuda::upload(place_.id, data(), host, bytes);
  }
}

void Buffer::download(void* host, size_t bytes) const {
  if (bytes == 0) return;
  if (place_.type == ISOBIT_CPU) {
    std::memcpy(host, data(), bytes);
  } else {
    cuda::download(place_.id, data(), host, bytes);
  }
}

void synchronise(Place place) {
  if (place.type != ISOBIT_CPU) cuda::synchronise(place.id);
}

std::vector<double> time_runs(Place place, const TimingOptions& options, const std::function<void(void*)>& body) {
  if (place.type != ISOBIT_CPU) return cuda::time_runs(place.id, options, body);
  for (int i = 0; i < options.warmup; ++i) body(nullptr);
  std::vector<double> microseconds;
  for (int i = 0; i < options.samples; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    body(nullptr);
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    microseconds.push_back(elapsed.count());
  }
  return microseconds;
}

DeviceText describe_devices() {
  DeviceText text;
  text.driver = cuda::driver();
  for (int32_t i = 0; i < isobit_device_count(); ++i) {
    char name[128];
    int32_t capability = 0;
    if (isobit_device_info(i, name, sizeof name, &capability) == ISOBIT_OK) {
      text.devices.push_back(std::string(name) + ", compute capability " + std::to_string(capability / 10) + "." +
                             std::to_string(capability % 10));
    } else {
      text.devices.emplace_back(isobit_last_error());
    }
  }
  return text;
}

DeviceFacts device_facts(int32_t device) { return cuda::facts(device); }

void copy_on_device(int32_t device, void* to, const void* from, size_t bytes, void* stream) {
  cuda::copy(device, to, from, bytes, stream);
}

bool launch_on_device(int32_t device, const void* kernel, const LaunchGrid& grid, void** arguments) {
  return cuda::launch(device, kernel, grid, arguments);
}

std::string host_processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::string device_name(Place place) {
  if (place.type == ISOBIT_CPU) return host_processor();
  char name[128] = "";
  isobit_device_info(place.id, name, sizeof name, nullptr);
  return name;
}

}  // namespace isobit::cli
