// Memory and time on the CPU or a CUDA device. device_cuda.cpp, or device_none.cpp in a build without CUDA.
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

// What a CUDA device and its software say of themselves; nothing is set. Clocks are the device's maxima.
struct DeviceFacts {
  std::string name, driver_build;   // driver_build: the kernel module's version, "" if the system does not tell
  int32_t capability = 0;           // major * 10 + minor
  int32_t driver = 0, runtime = 0;  // CUDA versions, 13000 for 13.0
  int32_t multiprocessors = 0, clock_mhz = 0, memory_clock_mhz = 0, memory_bus_bits = 0;
  int64_t memory_bytes = 0, free_bytes = 0, l2_bytes = 0, shared_bytes_per_block = 0;
  bool error_correction = false;
};
DeviceFacts device_facts(int32_t device);

// Copies between two buffers of one CUDA device, queued on the stream.
void copy_on_device(int32_t device, void* to, const void* from, size_t bytes, void* stream);

// Runs a kernel (the address of its host stub) on a CUDA device and waits. False if it has no image for the device.
struct LaunchGrid {
  uint32_t x = 1, y = 1, threads = 1;
};
bool launch_on_device(int32_t device, const void* kernel, const LaunchGrid& grid, void** arguments);

// Model name of the host's processor, "" if the system does not tell.
std::string host_processor();

// Name for result lines: the GPU's, or the processor's.
std::string device_name(Place place);

}  // namespace isobit::cli
