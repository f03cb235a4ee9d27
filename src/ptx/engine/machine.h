// The machine a module runs on: registered global memory, launch options, and the report of a launch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ptx/decode/module.h"

namespace isobit::ptx {

class MmaArithmetic;
class TensorArithmetic;
class GlobalMemory;

enum class Access : uint8_t { kRead, kReadWrite };

// When asynchronous copies happen: at their issue, only once nothing else can run, or at random moments (with random
// warp order and time slices as well).
enum class Schedule : uint8_t { kEager, kLazy, kRandom };

struct MachineOptions {
  Schedule schedule = Schedule::kEager;
  uint64_t seed = 1;
  bool check_races = false;
  bool check_initialised = true;
  bool allow_approximate = false;             // ex2.approx and its kin through libm: a value, but not the GPU's bits
  const MmaArithmetic* arithmetic = nullptr;  // null: hopper_arithmetic()
  const TensorArithmetic* tensor_arithmetic = nullptr;  // of tcgen05; null: exact_tensor_arithmetic()
  // Tensor memory shared by warps needs tcgen05.fence, and a copy follows a product only through a commit and a wait.
  // False: a synchronisation is enough, and what a thread issues runs in order; kernels in wide use rely on both.
  bool strict_tensor_order = true;
  uint32_t resident_clusters = 4;                  // clusters that take turns; more join only if all of these wait
  uint32_t multiprocessors = 132;                  // %nsmid
  uint32_t shared_limit = 232448;                  // opt-in bytes of a CTA
  uint64_t instruction_limit = uint64_t{1} << 33;  // warp instructions of a launch before it counts as hung
  size_t finding_limit = 32;
};

struct Extent {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t volume() const { return uint64_t{x} * y * z; }
};

struct LaunchConfig {
  Extent grid, block, cluster;
  uint32_t dynamic_shared = 0;
};

class Machine {
 public:
  explicit Machine(MachineOptions options = {});
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  MachineOptions& options() { return options_; }

  // Device code may touch [data, data + bytes) and nothing else. Addresses are host pointers. False if it overlaps a
  // buffer that is registered already. With `initialised` false, a read of a byte that no kernel wrote is a finding.
  bool register_buffer(const void* data, size_t bytes, Access access, bool initialised);
  bool unregister_buffer(const void* data);
  // The host wrote these bytes (a memset or copy).
  void mark_initialised(const void* data, size_t bytes);
  // The length of the registered buffer from `data` to its end; 0 outside of every buffer.
  size_t bytes_from(const void* data) const;

  // Runs a kernel to its end. `parameters` points to the arguments in order; sizes come from the .param declarations.
  Report launch(Module& module, std::string_view kernel, const LaunchConfig& config, const void* const* parameters,
                size_t parameter_count);

 private:
  MachineOptions options_;
  std::unique_ptr<GlobalMemory> memory_;
};

}  // namespace isobit::ptx
