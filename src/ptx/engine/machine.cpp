#include "ptx/engine/machine.h"

#include <cstring>
#include <optional>

#include "ptx/engine/engine.h"
#include "ptx/engine/global_memory.h"

namespace isobit::ptx {
namespace {

// Limits that the driver enforces on every architecture isobit builds for.
constexpr uint64_t kMostThreads = 1024;
constexpr uint64_t kMostClusterCtas = 16;  // beyond 8 only with a non-portable attribute

std::optional<std::string> check_cluster(const Kernel& kernel, const LaunchConfig& c) {
  if (c.cluster.volume() == 0 || c.cluster.volume() > kMostClusterCtas)
    return "cluster of " + std::to_string(c.cluster.volume()) + " CTAs";
  if (c.grid.x % c.cluster.x || c.grid.y % c.cluster.y || c.grid.z % c.cluster.z)
    return "the grid is not a multiple of the cluster";
  const uint32_t asked[3] = {c.cluster.x, c.cluster.y, c.cluster.z};
  for (int i = 0; i < 3; ++i) {
    if (kernel.cluster[i] != 0 && kernel.cluster[i] != asked[i]) return "the kernel requires another cluster shape";
  }
  return std::nullopt;
}

std::optional<std::string> check_block(const Kernel& kernel, const LaunchConfig& c) {
  const uint64_t threads = c.block.volume();
  if (threads == 0 || threads > kMostThreads) return "block of " + std::to_string(threads) + " threads";
  if (c.block.z > 64) return "block depth beyond 64";
  const uint32_t asked[3] = {c.block.x, c.block.y, c.block.z};
  uint64_t most = 1;
  for (int i = 0; i < 3; ++i) {
    most *= kernel.max_threads[i];
    if (kernel.required_threads[i] != 0 && kernel.required_threads[i] != asked[i])
      return "the kernel requires another block shape";
  }
  if (most != 0 && threads > most)
    return "block of " + std::to_string(threads) + " threads, the kernel was compiled for " + std::to_string(most);
  return std::nullopt;
}

std::optional<std::string> check_launch(const Kernel& kernel, const LaunchConfig& c, const MachineOptions& options,
                                        size_t parameters) {
  if (parameters != kernel.parameters.size()) {
    return "expected " + std::to_string(kernel.parameters.size()) + " parameters, got " + std::to_string(parameters);
  }
  if (c.grid.volume() == 0) return "empty grid";
  if (c.grid.y > 65535 || c.grid.z > 65535 || c.grid.x > 0x7FFFFFFFu) return "grid beyond the hardware's limit";
  if (auto error = check_block(kernel, c)) return error;
  if (auto error = check_cluster(kernel, c)) return error;
  const uint64_t shared = kernel.static_shared - 1024 + c.dynamic_shared;  // without what the system reserves
  if (shared > options.shared_limit)
    return "shared memory of " + std::to_string(shared) + " bytes, limit " + std::to_string(options.shared_limit);
  return std::nullopt;
}

// The parameter block, aligned as tensor maps inside it need.
class ParameterBlock {
 public:
  ParameterBlock(const Kernel& kernel, const void* const* values) : storage_(kernel.parameter_bytes + kAlignment) {
    const uint64_t start = reinterpret_cast<uint64_t>(storage_.data());
    data_ = storage_.data() + (kAlignment - start % kAlignment) % kAlignment;
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      std::memcpy(data_ + kernel.parameters[i].offset, values[i], kernel.parameters[i].bytes);
    }
  }
  std::byte* data() { return data_; }

 private:
  static constexpr uint64_t kAlignment = 128;
  std::vector<std::byte> storage_;
  std::byte* data_ = nullptr;
};

// Registers what a launch needs besides the caller's buffers, and takes it back.
class ScopedRegions {
 public:
  explicit ScopedRegions(GlobalMemory& memory) : memory_(memory) {}
  ~ScopedRegions() {
    for (const uint64_t base : bases_) memory_.remove(base);
  }
  void add(void* data, uint64_t bytes, Access access) {
    if (bytes > 0 && memory_.add(static_cast<std::byte*>(data), bytes, access, true)) {
      bases_.push_back(reinterpret_cast<uint64_t>(data));
    }
  }

 private:
  GlobalMemory& memory_;
  std::vector<uint64_t> bases_;
};

Report refused(const std::string& message) {
  Report report;
  Finding finding;
  finding.message = message;
  report.findings.push_back(finding);
  return report;
}

}  // namespace

Machine::Machine(MachineOptions options) : options_(options), memory_(std::make_unique<GlobalMemory>()) {}
Machine::~Machine() = default;

bool Machine::register_buffer(const void* data, size_t bytes, Access access, bool initialised) {
  return memory_->add(static_cast<std::byte*>(const_cast<void*>(data)), bytes, access, initialised);
}
bool Machine::unregister_buffer(const void* data) { return memory_->remove(reinterpret_cast<uint64_t>(data)); }
void Machine::mark_initialised(const void* data, size_t bytes) {
  memory_->mark_initialised(reinterpret_cast<uint64_t>(data), bytes);
}
size_t Machine::bytes_from(const void* data) const {
  const uint64_t address = reinterpret_cast<uint64_t>(data);
  const Region* region = memory_->find(address);
  return region ? region->base + region->size - address : 0;
}

Report Machine::launch(Module& module, std::string_view name, const LaunchConfig& config, const void* const* parameters,
                       size_t parameter_count) {
  const Kernel* kernel = module.find(name);
  if (!kernel) return refused("no kernel " + std::string(name) + " in the module");
  if (const auto error = check_launch(*kernel, config, options_, parameter_count)) return refused(*error);
  Report report;
  ParameterBlock block(*kernel, parameters);
  ScopedRegions regions(*memory_);
  regions.add(block.data(), kernel->parameter_bytes, Access::kRead);
  for (const auto& s : module.symbols())
    regions.add(s->data, s->size, s->writable ? Access::kReadWrite : Access::kRead);
  Engine(options_, *memory_, *kernel, config, block.data(), report).run();
  return report;
}

}  // namespace isobit::ptx
