#include "selftest/machine.h"

#include <fmt/format.h>
#include <isobit/isobit.h>
#include <sys/utsname.h>

#include <thread>

namespace isobit::cli {
namespace {

std::string cuda_version(int32_t version) {
  return version == 0 ? "none" : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

nlohmann::ordered_json device_json(int32_t device) {
  const DeviceFacts f = device_facts(device);
  return {{"name", f.name},
          {"compute_capability", fmt::format("{}.{}", f.capability / 10, f.capability % 10)},
          {"driver", f.driver_build.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(f.driver_build)},
          {"driver_cuda", cuda_version(f.driver)},
          {"runtime_cuda", cuda_version(f.runtime)},
          {"multiprocessors", f.multiprocessors},
          {"largest_clock_mhz", f.clock_mhz},
          {"memory_clock_mhz", f.memory_clock_mhz},
          {"memory_bus_bits", f.memory_bus_bits},
          {"memory_bytes", f.memory_bytes},
          {"free_bytes", f.free_bytes},
          {"l2_bytes", f.l2_bytes},
          {"shared_bytes_per_block", f.shared_bytes_per_block},
          {"error_correction", f.error_correction}};
}

}  // namespace

nlohmann::ordered_json describe_machine(Place place) {
  nlohmann::ordered_json out = {{"build", isobit_build_info()}};
  utsname name = {};
  if (uname(&name) == 0) out["system"] = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  out["processor"] = host_processor();
  out["processors"] = std::thread::hardware_concurrency();
  out["cuda"] = describe_devices().driver;
  out["device"] = place.type == ISOBIT_CPU ? nlohmann::ordered_json(nullptr) : device_json(place.id);
  return out;
}

}  // namespace isobit::cli
