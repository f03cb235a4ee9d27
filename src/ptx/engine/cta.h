// A CTA and its cluster: shared memory, barriers, warps.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "ptx/engine/race_checker.h"
#include "ptx/engine/tensor_memory.h"
#include "ptx/engine/warp.h"

namespace isobit::ptx {

class Cluster;

struct NamedBarrier {
  uint32_t arrived = 0;   // threads of this generation
  uint32_t expected = 0;  // threads, fixed by the first arrival; 0 between generations
  uint32_t generation = 0;
  uint32_t popcount = 0;  // of the predicate of bar.red
  bool all = true, any = false;
  uint32_t result_popcount = 0;
  bool result_all = true, result_any = false;
  Clock pending, passed;
};

// The meaning of an mbarrier's eight bytes; they also hold the phase, so that a copy of stale bytes is visible.
struct MemoryBarrier {
  uint32_t expected = 0;
  uint32_t pending = 0;
  int64_t bytes = 0;  // tx-count
  uint32_t phase = 0;
  bool init_fenced = false;  // a fence.mbarrier_init of the initialising warp followed
  int init_agent = 0;
  uint32_t init_clock = 0;
  Clock arriving, passed;
};

class Cta {
 public:
  Cta(Engine& engine, Cluster& cluster, uint32_t rank, const uint32_t (&id)[3]);

  Engine& engine;
  Cluster& cluster;
  const uint32_t rank;
  uint32_t id[3];
  std::vector<std::byte> shared;
  std::vector<uint8_t> shared_valid;
  std::array<NamedBarrier, 16> barriers;
  std::vector<NamedBarrier> warpgroups;               // rendezvous of the four warps of a wgmma
  std::map<uint32_t, MemoryBarrier> memory_barriers;  // by offset
  TensorMemory tensor;
  std::vector<std::unique_ptr<Warp>> warps;
  uint32_t threads = 0;

  uint32_t live_threads() const;
  bool done() const;
};

class Cluster {
 public:
  Cluster(Engine& engine, const uint32_t (&first)[3]);

  Cta* cta(uint32_t rank) { return rank < ctas.size() ? ctas[rank].get() : nullptr; }
  bool done() const;

  Engine& engine;
  uint32_t first[3];  // grid position of its first CTA
  std::vector<std::unique_ptr<Cta>> ctas;
  std::unique_ptr<RaceChecker> races;
  // The cluster barrier counts warps.
  uint32_t arrived = 0;
  uint32_t generation = 0;
  Clock pending, passed;
};

}  // namespace isobit::ptx
