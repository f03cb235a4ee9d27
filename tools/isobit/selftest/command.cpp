// isobit selftest: what the owner of a device runs and sends back.
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "command.h"
#include "selftest/selftest.h"
#include "selftest/summary.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

struct Request {
  SelftestOptions options;
  std::optional<int> device;
  bool cpu = false;
  bool no_timings = false;
  std::string report;
  int timeout_s = 600;
  bool quiet = false;
};

// Ends the process when a kernel hangs: no call of the CUDA runtime comes back then. The report is written as it grows.
class Watchdog {
 public:
  explicit Watchdog(int seconds) : thread_([this, seconds] { watch(seconds); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  void at(const std::string& what) {
    const std::lock_guard lock(mutex_);
    at_ = what;
  }

 private:
  void watch(int seconds) {
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, std::chrono::seconds(seconds), [this] { return done_; })) return;
    complain("selftest: not done after {} s (--timeout), after {}", seconds, at_);
    std::_Exit(kFailed);
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::string at_ = "the start";
  bool done_ = false;
  std::thread thread_;
};

void write_report(const std::string& path, const nlohmann::ordered_json& report) {
  if (path.empty()) return;
  std::ofstream file(path, std::ios::trunc);
  file << report.dump(1) << '\n' << std::flush;
  if (!file) throw std::invalid_argument(fmt::format("--report: cannot write \"{}\"", path));
}

int run(Request request) {
  if (!request.cpu) {
    const int devices = isobit_device_count();
    if (request.device && *request.device >= devices) {
      complain("selftest: no CUDA device {} here", *request.device);
      return kNoDevice;
    }
    request.options.device = request.device;
    if (!request.device && devices > 0) request.options.device = 0;
  }
  request.options.timings = !request.no_timings;
  Progress progress(request.quiet);
  Watchdog watchdog(request.timeout_s);
  std::string section;
  const SelftestResult result =
      run_selftest(request.options, [&](const std::string& name, const std::string& at, const SelftestResult& so_far) {
        progress.show(fmt::format("{} {}", name, at), 0, 1);
        watchdog.at(fmt::format("{} {}", name, at));
        if (name != section) write_report(request.report, describe_selftest(so_far));
        section = name;
      });
  progress.clear();
  fmt::print("{}", summary_of(result, describe_selftest(result)));
  if (!request.report.empty()) fmt::print("report: {}\n", request.report);
  return result.ok() ? kOk : kFailed;
}

}  // namespace

std::function<int()> set_up_selftest(CLI::App& app) {
  const auto request = std::make_shared<Request>();
  app.add_option("--report", request->report, "Write everything that was found to this file, as JSON");
  app.add_flag("--quick", request->options.quick, "Small timings, and without the largest call");
  app.add_flag("--no-timings", request->no_timings, "Bits and rules only");
  app.add_option("--device", request->device, "CUDA device; not named: 0, or the CPU backend alone where there is none")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--cpu", request->cpu, "The CPU backend alone");
  app.add_option("--timeout", request->timeout_s, "Seconds after which it gives up")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--plant-fault", request->options.plant_fault, "One bit of every expected hash is wrong: it must fail");
  app.add_flag("--quiet", request->quiet, "No progress on stderr");
  app.footer("Example: isobit selftest --report selftest.json");
  return [request] { return run(*request); };
}

}  // namespace isobit::cli
