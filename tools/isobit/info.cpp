// isobit info: what to paste into a bug report.
#include <fmt/format.h>
#include <isobit/isobit.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "device.h"
#include "kernels.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

struct Info {
  std::string build, system, processor, threads, driver;
  std::vector<std::string> devices;
  std::vector<Kernel> kernels;
};

Info gather() {
  Info info;
  info.build = isobit_build_info();
  utsname name = {};
  if (uname(&name) == 0) info.system = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  info.processor = host_processor();
  const char* omp = std::getenv("OMP_NUM_THREADS");
  info.threads = fmt::format("{} processors, OMP_NUM_THREADS {}", std::thread::hardware_concurrency(),
                             omp != nullptr ? omp : "not set");
  const DeviceText text = describe_devices();
  info.driver = text.driver;
  info.devices = text.devices;
  info.kernels = all_kernels();
  return info;
}

void print_json(const Info& info) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const Kernel& kernel : info.kernels) {
    kernels.push_back({{"op", kernel.op},
                       {"kernel", kernel.name},
                       {"contract", kernel.contract},
                       {"built", kernel.built},
                       {"usable", kernel.usable},
                       {"reason", kernel.reason}});
  }
  const nlohmann::ordered_json object = {
      {"build", info.build},   {"system", info.system},   {"processor", info.processor}, {"threads", info.threads},
      {"driver", info.driver}, {"devices", info.devices}, {"kernels", kernels}};
  fmt::print("{}\n", object.dump(2));
}

void print_text(const Info& info) {
  fmt::print("build      {}\nsystem     {}\nprocessor  {}\nthreads    {}\ndriver     {}\n", info.build, info.system,
             info.processor, info.threads, info.driver);
  if (info.devices.empty()) fmt::print("devices    none\n");
  for (size_t i = 0; i < info.devices.size(); ++i) fmt::print("device {}   {}\n", i, info.devices[i]);
  for (const Kernel& kernel : info.kernels) {
    fmt::print("kernel     {} {}: {}\n", kernel.op, kernel.name, kernel.usable ? "usable" : kernel.reason);
  }
}

}  // namespace

std::function<int()> set_up_info(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "One JSON object");
  return [json] {
    const Info info = gather();
    *json ? print_json(info) : print_text(info);
    return static_cast<int>(kOk);
  };
}

}  // namespace isobit::cli
