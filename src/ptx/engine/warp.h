// A warp: 32 lanes in step, with groups of lanes at different places after a divergent branch.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "ptx/decode/instruction.h"
#include "ptx/engine/clock.h"
#include "ptx/engine/in_flight.h"
#include "ptx/engine/tensor_order.h"

namespace isobit::ptx {

class Cta;
class Engine;

enum class Outcome : uint8_t {
  kContinue,
  kYield,  // go on with the next instruction, but let others run first
  kWait,   // try this instruction again later
  kPark,   // these lanes wait here for other lanes of the warp
};

struct LaneGroup {
  int32_t pc = 0;
  LaneMask lanes = 0;
  bool parked = false;   // until lanes of other groups come here
  bool resting = false;  // waits for something outside the warp; others go first
};

// One asynchronous operation that somebody can wait for.
struct AsyncOperation;
using AsyncHandle = std::shared_ptr<AsyncOperation>;

// The commit groups of one lane: operations since the last commit, then closed groups, oldest first.
struct CommitGroups {
  std::vector<AsyncHandle> open;
  std::deque<std::vector<AsyncHandle>> closed;
};

class Warp {
 public:
  Warp(Cta& cta, int index, LaneMask lanes);

  template <class T>
  T* row(Slot slot) {
    return reinterpret_cast<T*>(words_.data() + static_cast<size_t>(slot) * kLanes);
  }
  uint32_t* word(Slot slot) { return row<uint32_t>(slot); }
  uint64_t* wide(Slot slot) { return row<uint64_t>(slot); }
  LaneMask& predicate(Slot slot) { return predicates_[static_cast<size_t>(slot)]; }
  void set_predicate(Slot slot, LaneMask value, LaneMask active) {
    LaneMask& p = predicate(slot);
    p = (p & ~active) | (value & active);
  }
  LaneMask guard_lanes(const Instruction& i, LaneMask active) {
    if (i.guard == kNoSlot) return active;
    return active & (i.guard_negated ? ~predicate(i.guard) : predicate(i.guard));
  }

  bool done() const { return groups.empty(); }
  LaneMask alive() const { return lanes & ~exited; }
  void stop(Outcome outcome) { outcome_ = outcome; }
  // Runs until the quantum is used, the warp ends or has to wait. Returns why.
  enum class StopReason : uint8_t { kQuantum, kYield, kBlocked, kEnd };
  StopReason run(int quantum);

  Cta& cta;
  Engine& engine;
  const int index;       // in the CTA
  const LaneMask lanes;  // that exist
  LaneMask exited = 0;
  LaneMask carry = 0;  // of add.cc and its kin
  std::vector<LaneGroup> groups;
  int32_t pc = 0;                // of the instruction being executed
  std::vector<std::byte> local;  // lane after lane

  // Waiting on a named barrier or as a member of a warpgroup: the generation that must pass.
  std::array<bool, 17> waiting{};
  std::array<uint32_t, 17> generation{};

  uint32_t cluster_generation = 0;
  bool cluster_arrived = false;

  std::array<CommitGroups, kLanes> copies;       // cp.async
  std::array<CommitGroups, kLanes> bulk_copies;  // cp.async.bulk
  CommitGroups multiplies;                       // wgmma
  InFlightRegisters in_flight;                   // of wgmma and tcgen05.ld; kept only for the race checker
  bool multiply_fenced = false;                  // a wgmma.fence since the last wait

  int agent = 0;
  TensorOrder tensor;
  Clock clock;
  Clock released;  // what the last fence made visible to relaxed operations after it
  Clock acquired;  // what relaxed loads saw, taken in by the next fence

 private:
  bool select();
  void merge();
  StopReason step_group(int& quantum);
  void branch(LaneMask taken, int32_t target);
  void branch_table(const Instruction& i, LaneMask taken);
  void retire(LaneMask ending);
  void check_in_flight(const Instruction& i);
  bool release_warp_barrier();

  std::vector<uint32_t> words_;
  std::vector<LaneMask> predicates_;
  Outcome outcome_ = Outcome::kContinue;
};

// Calls f(lane) for every lane of the mask, in ascending order.
template <class F>
void for_each_lane(LaneMask mask, F&& f) {
  for (LaneMask left = mask; left != 0; left &= left - 1) f(std::countr_zero(left));
}

inline int first_lane(LaneMask mask) { return std::countr_zero(mask); }

}  // namespace isobit::ptx
