// One launch: resident clusters, pending asynchronous operations, findings.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ptx/engine/cta.h"
#include "ptx/engine/global_memory.h"
#include "ptx/engine/machine.h"

namespace isobit::ptx {

struct AsyncOperation {
  std::function<void(AsyncOperation&)> work;
  bool done = false;
  const Cluster* cluster = nullptr;
  int32_t pc = 0;
  Clock clock;
  int agent = 0;
  uint32_t epoch = 0;                    // of the agent
  const void* pipe = nullptr;            // operations of one pipe complete in order
  std::vector<uint32_t> tensor_visible;  // what came before in tensor memory
};

class Engine {
 public:
  Engine(const MachineOptions& options, GlobalMemory& memory, const Kernel& kernel, const LaunchConfig& config,
         std::byte* parameters, Report& report);

  void run();

  const Kernel& kernel() const { return kernel_; }
  const LaunchConfig& config() const { return config_; }
  const MachineOptions& options() const { return options_; }
  const MmaArithmetic& arithmetic() const { return *arithmetic_; }
  const TensorArithmetic& tensor_arithmetic() const { return *tensor_arithmetic_; }
  GlobalMemory& memory() { return memory_; }
  Statistics& statistics() { return report_.statistics; }
  std::byte* parameters() { return parameters_; }
  uint32_t shared_bytes() const { return shared_bytes_; }
  uint32_t dynamic_shared_offset() const { return dynamic_shared_offset_; }
  uint32_t warps_per_cta() const { return warps_per_cta_; }
  uint64_t time() const { return time_; }
  std::mt19937_64& random() { return random_; }

  // Something happened that a waiting warp may have waited for.
  void progress() { ++progress_; }

  // Records a finding about the instruction at `pc`; equal (kind, pc, other) are counted once.
  void add_finding(FindingKind kind, int32_t pc, int32_t other, const std::string& message);

  // An operation that follows what `warp` has seen, for the caller to perform.
  AsyncHandle begin_operation(Warp& warp);
  // The next operation of the warp's tensor pipe: a product or commit, or a copy.
  AsyncHandle begin_pipe_operation(Warp& warp, bool copy);
  // Starts an asynchronous operation of `warp`: runs it now (eager) or keeps it pending.
  AsyncHandle submit(Warp& warp, std::function<void(AsyncOperation&)> work);
  // The same for an operation that was begun.
  void submit(AsyncHandle operation, std::function<void(AsyncOperation&)> work);

  // Takes the next cluster of the grid that has not started: the position of its first CTA.
  std::optional<std::array<uint32_t, 3>> take_cluster();

  // Release-acquire through a location in global or shared memory, for atomics; by host address.
  Clock& location_clock(uint64_t address) { return location_clocks_[address]; }

 private:
  bool admit();
  bool round(bool& ran);
  AsyncHandle new_operation(const Warp& warp);
  void complete(size_t index);
  void complete_caught(size_t index);
  bool complete_one();
  void finish_cluster(size_t index);
  void check_waited(const Cluster& cluster);
  void check_tensor_memory(const Cluster& cluster);
  void report_waiting(FindingKind kind, const char* what);
  void run_warp(Warp& warp, int quantum, bool& ran);
  Finding make_finding(FindingKind kind, int32_t pc, const std::string& message) const;

  const MachineOptions& options_;
  GlobalMemory& memory_;
  const Kernel& kernel_;
  const LaunchConfig config_;
  std::byte* parameters_;
  Report& report_;
  const MmaArithmetic* arithmetic_;
  const TensorArithmetic* tensor_arithmetic_;
  uint32_t shared_bytes_ = 0, dynamic_shared_offset_ = 0, warps_per_cta_ = 0;

  std::vector<std::unique_ptr<Cluster>> resident_;
  uint64_t next_cluster_ = 0, cluster_count_ = 0;
  std::vector<AsyncHandle> pending_;
  uint64_t progress_ = 0, time_ = 0;
  bool failed_ = false;
  std::mt19937_64 random_;
  const Warp* current_ = nullptr;
  std::map<std::tuple<FindingKind, int32_t, int32_t>, size_t> seen_findings_;
  std::unordered_map<uint64_t, Clock> location_clocks_;
};

}  // namespace isobit::ptx
