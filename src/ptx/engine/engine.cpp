#include "ptx/engine/engine.h"

#include <algorithm>

#include "ptx/arithmetic/mma_arithmetic.h"
#include "ptx/arithmetic/tensor_arithmetic.h"

namespace isobit::ptx {
namespace {

constexpr int kLongQuantum = 100000;
constexpr int kIdleRounds = 4;   // rounds without progress before asynchronous work is forced on
constexpr int kSpinRounds = 64;  // the same while warps still execute: they may spin on memory
constexpr uint32_t kMostResident = 132;

uint32_t align_up(uint32_t value, uint32_t alignment) { return (value + alignment - 1) / alignment * alignment; }

}  // namespace

Engine::Engine(const MachineOptions& options, GlobalMemory& memory, const Kernel& kernel, const LaunchConfig& config,
               std::byte* parameters, Report& report)
    : options_(options),
      memory_(memory),
      kernel_(kernel),
      config_(config),
      parameters_(parameters),
      report_(report),
      arithmetic_(options.arithmetic ? options.arithmetic : &hopper_arithmetic()),
      tensor_arithmetic_(options.tensor_arithmetic ? options.tensor_arithmetic : &exact_tensor_arithmetic()),
      random_{options.seed} {
  dynamic_shared_offset_ = align_up(kernel.static_shared, std::max(16u, kernel.dynamic_alignment));
  shared_bytes_ = config.dynamic_shared == 0 ? kernel.static_shared : dynamic_shared_offset_ + config.dynamic_shared;
  warps_per_cta_ = static_cast<uint32_t>((config.block.volume() + kLanes - 1) / kLanes);
  cluster_count_ = config.grid.volume() / config.cluster.volume();
}

std::optional<std::array<uint32_t, 3>> Engine::take_cluster() {
  if (next_cluster_ >= cluster_count_) return std::nullopt;
  const uint32_t nx = config_.grid.x / config_.cluster.x, ny = config_.grid.y / config_.cluster.y;
  const uint64_t n = next_cluster_++;
  return std::array{static_cast<uint32_t>(n % nx) * config_.cluster.x,
                    static_cast<uint32_t>(n / nx % ny) * config_.cluster.y,
                    static_cast<uint32_t>(n / nx / ny) * config_.cluster.z};
}

bool Engine::admit() {
  const auto first = take_cluster();
  if (!first) return false;
  const uint32_t position[3] = {(*first)[0], (*first)[1], (*first)[2]};
  resident_.push_back(std::make_unique<Cluster>(*this, position));
  return true;
}

AsyncHandle Engine::new_operation(const Warp& warp) {
  auto operation = std::make_shared<AsyncOperation>();
  operation->cluster = &warp.cta.cluster;
  operation->pc = warp.pc;
  ++report_.statistics.async_operations;
  return operation;
}

AsyncHandle Engine::begin_pipe_operation(Warp& warp, bool copy) {
  AsyncHandle operation = new_operation(warp);
  TensorOrder& t = warp.tensor;
  operation->pipe = &t;
  if (warp.clock.empty()) return operation;
  operation->agent = copy ? t.copy_agent : t.product_agent;
  operation->epoch = ++(copy ? t.copies : t.products);
  const size_t agent = static_cast<size_t>(operation->agent);
  t.pipe.join(warp.clock);
  t.pipe.seen[agent] = t.pipe.tensor[agent] = operation->epoch;
  Clock::raise(t.pipe_visible, t.visible);
  t.pipe_visible[agent] = operation->epoch;
  const bool alone = copy && options_.strict_tensor_order;
  operation->clock = alone ? warp.clock : t.pipe;
  operation->clock.seen[agent] = operation->epoch;
  operation->tensor_visible = alone ? t.visible : t.pipe_visible;
  return operation;
}

AsyncHandle Engine::begin_operation(Warp& warp) {
  AsyncHandle operation = new_operation(warp);
  if (RaceChecker* races = warp.cta.cluster.races.get()) {
    operation->clock = warp.clock;
    operation->agent = races->new_operation(operation->clock);
    operation->epoch = operation->clock.seen[static_cast<size_t>(operation->agent)];
  }
  return operation;
}

AsyncHandle Engine::submit(Warp& warp, std::function<void(AsyncOperation&)> work) {
  AsyncHandle operation = begin_operation(warp);
  submit(operation, std::move(work));
  return operation;
}

void Engine::submit(AsyncHandle operation, std::function<void(AsyncOperation&)> work) {
  operation->work = std::move(work);
  pending_.push_back(std::move(operation));
  if (options_.schedule == Schedule::kEager) complete(pending_.size() - 1);
}

void Engine::complete(size_t index) {
  const AsyncHandle operation = std::move(pending_[index]);
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
  operation->work(*operation);
  operation->work = nullptr;
  operation->done = true;
  progress();
}

bool Engine::complete_one() {
  if (pending_.empty()) return false;
  size_t index = options_.schedule == Schedule::kRandom ? random_() % pending_.size() : 0;
  if (const void* pipe = pending_[index]->pipe) {
    const auto first = std::find_if(pending_.begin(), pending_.end(), [&](const auto& o) { return o->pipe == pipe; });
    index = static_cast<size_t>(first - pending_.begin());
  }
  complete_caught(index);
  return true;
}

// The same outside of a warp's time slice: a fault belongs to the operation.
void Engine::complete_caught(size_t index) {
  const int32_t pc = pending_[index]->pc;
  try {
    complete(index);
  } catch (const ExecutionFault& fault) {
    add_finding(fault.kind, pc, -1, fault.message);
    failed_ = true;
  }
}

void Engine::run_warp(Warp& warp, int quantum, bool& ran) {
  current_ = &warp;
  try {
    const Warp::StopReason reason = warp.run(quantum);
    ran |= reason == Warp::StopReason::kQuantum;
    if (reason == Warp::StopReason::kEnd) progress();
  } catch (const ExecutionFault& fault) {
    add_finding(fault.kind, warp.pc, -1, fault.message);
    failed_ = true;
  }
}

// Gives every warp one time slice. True if something happened that can let a waiting warp go on.
bool Engine::round(bool& ran) {
  const uint64_t before = progress_;
  const bool random = options_.schedule == Schedule::kRandom;
  std::vector<Warp*> order;
  for (auto& cluster : resident_) {
    for (auto& cta : cluster->ctas) {
      for (auto& warp : cta->warps) {
        if (!warp->done()) order.push_back(warp.get());
      }
    }
  }
  if (random) std::shuffle(order.begin(), order.end(), random_);
  for (Warp* warp : order) {
    run_warp(*warp, random ? static_cast<int>(1 + random_() % 400) : kLongQuantum, ran);
    if (random && random_() % 4 == 0) complete_one();
    if (failed_) return true;
  }
  for (size_t i = resident_.size(); i-- > 0;) {
    if (resident_[i]->done()) finish_cluster(i);
  }
  time_ += 1000;
  return progress_ != before;
}

// Every copy out of shared memory must have been waited for by the thread that started it.
void Engine::check_waited(const Cluster& cluster) {
  for (const auto& cta : cluster.ctas) {
    for (const auto& warp : cta->warps) {
      for (const CommitGroups& g : warp->bulk_copies) {
        const bool committed =
            std::any_of(g.closed.begin(), g.closed.end(), [](const auto& group) { return !group.empty(); });
        if (g.open.empty() && !committed) continue;
        const auto& operations = g.open.empty() ? g.closed.front() : g.open;
        if (operations.empty()) continue;
        current_ = warp.get();
        add_finding(FindingKind::kRace, operations.front()->pc, -5, "the thread ended before this copy was waited for");
      }
    }
  }
}

// Tensor memory is handed out per multiprocessor: what a CTA keeps is lost to the next.
void Engine::check_tensor_memory(const Cluster& cluster) {
  for (const auto& cta : cluster.ctas) {
    if (cta->tensor.allocated() == 0) continue;
    current_ = cta->warps.front().get();
    add_finding(
        FindingKind::kTensorMemory, static_cast<int32_t>(kernel_.code.size()) - 1, -6,
        "the CTA ended with " + std::to_string(cta->tensor.allocated()) + " columns of tensor memory allocated");
  }
}

// A cluster that has ended: its operations must not outlive its shared memory.
void Engine::finish_cluster(size_t index) {
  const Cluster* cluster = resident_[index].get();
  if (options_.check_races) check_waited(*cluster);
  for (size_t i = 0; i < pending_.size();) {
    if (pending_[i]->cluster != cluster) {
      ++i;
      continue;
    }
    add_finding(FindingKind::kRace, pending_[i]->pc, -2, "the cluster ended before this operation was waited for");
    complete_caught(i);
  }
  check_tensor_memory(*cluster);
  resident_.erase(resident_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Engine::run() {
  int idle = 0, spinning = 0;
  while (!failed_) {
    while (resident_.size() < options_.resident_clusters && admit()) {
    }
    if (resident_.empty()) return;
    bool ran = false;
    if (round(ran)) {
      idle = spinning = 0;
      continue;
    }
    if (report_.statistics.warp_instructions > options_.instruction_limit) {
      return report_waiting(FindingKind::kTimeout, "instruction limit reached");
    }
    // A group of lanes that works on while others of its warp wait has slices in which only the others are tried.
    if (ran) idle = 0;
    if (ran ? ++spinning < kSpinRounds : ++idle < kIdleRounds) continue;
    idle = spinning = 0;
    if (complete_one()) continue;
    if (resident_.size() * config_.cluster.volume() < kMostResident && admit()) continue;
    if (!ran) return report_waiting(FindingKind::kDeadlock, "waits here");
  }
}

void Engine::report_waiting(FindingKind kind, const char* what) {
  for (auto& cluster : resident_) {
    for (auto& cta : cluster->ctas) {
      for (auto& warp : cta->warps) {
        for (const LaneGroup& g : warp->groups) {
          if (report_.findings.size() >= options_.finding_limit) return;
          current_ = warp.get();
          report_.findings.push_back(make_finding(kind, g.pc, std::string(what) + ", lanes " + hex(g.lanes)));
        }
      }
    }
  }
}

Finding Engine::make_finding(FindingKind kind, int32_t pc, const std::string& message) const {
  Finding f;
  f.kind = kind;
  f.message = message;
  const Instruction& i = kernel_.code[static_cast<size_t>(pc)];
  f.line = i.line;
  f.instruction = std::string(i.text.substr(0, 120));
  std::replace(f.instruction.begin(), f.instruction.end(), '\n', ' ');
  if (current_) {
    std::copy_n(current_->cta.id, 3, f.cta);
    f.warp = current_->index;
  }
  return f;
}

void Engine::add_finding(FindingKind kind, int32_t pc, int32_t other, const std::string& message) {
  const auto [it, inserted] = seen_findings_.emplace(std::tuple{kind, pc, other}, report_.findings.size());
  if (!inserted) {
    if (it->second < report_.findings.size()) ++report_.findings[it->second].count;
    return;
  }
  if (report_.findings.size() < options_.finding_limit) report_.findings.push_back(make_finding(kind, pc, message));
}

}  // namespace isobit::ptx
