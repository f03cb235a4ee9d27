// Memory and time on the CPU or a CUDA device. device_cuda.cpp, or device_cpu.cpp in a build without CUDA.
#pragma once

#include <isobit/isobit.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace isobit::cli {

struct Place {
  isobit_device_type type = ISOBIT_CPU;
  int32_t id = 0;
};

// Memory of one place, aligned to 256 bytes at least. Failures throw std::runtime_error.
class Buffer {
 public:
  Buffer(Place place, size_t bytes);
  Place place() const { return place_; }
  void* data() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }
  void fill(int byte) const;
  void upload(const void* host, size_t bytes) const;
  void download(void* host, size_t bytes) const;  // after everything queued on the default stream

 private:
  Place place_;
  size_t bytes_;
  std::shared_ptr<void> memory_;
};

// Waits for the place's default stream; throws if it has failed.
void synchronise(Place place);

struct TimingOptions {
  int warmup = 3;
  int samples = 20;
  bool warm = false;  // leave data in the L2 cache between samples; otherwise a CUDA device's L2 is overwritten
};

// Microseconds of each run of `body`, which takes the stream. CUDA: events around it; CPU: the steady clock.
std::vector<double> time_runs(Place place, const TimingOptions& options, const std::function<void(void*)>& body);

// What `isobit info` says of the driver and of the devices.
struct DeviceText {
  std::string driver;
  std::vector<std::string> devices;
};
DeviceText describe_devices();

// Model name of the host's processor, "" if the system does not tell.
std::string host_processor();

// Name for result lines: the GPU's, or the processor's.
std::string device_name(Place place);

}  // namespace isobit::cli
