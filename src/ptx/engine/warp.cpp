#include "ptx/engine/warp.h"

#include <algorithm>
#include <climits>

#include "ptx/engine/engine.h"

namespace isobit::ptx {
namespace {

// One of the registers that come as x, y and z.
uint32_t axis_value(SpecialRegister which, const LaunchConfig& c, const Cta& cta, uint32_t thread) {
  const uint32_t index = static_cast<uint32_t>(which), axis = index % 3;
  const uint32_t block[3] = {c.block.x, c.block.y, c.block.z}, grid[3] = {c.grid.x, c.grid.y, c.grid.z};
  const uint32_t cluster[3] = {c.cluster.x, c.cluster.y, c.cluster.z};
  const uint32_t tid[3] = {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]};
  switch (index / 3) {
    case 0:
      return tid[axis];
    case 1:
      return block[axis];
    case 2:
      return cta.id[axis];
    case 3:
      return grid[axis];
    case 4:
      return cta.id[axis] / cluster[axis];
    case 5:
      return grid[axis] / cluster[axis];
    case 6:
      return cta.id[axis] % cluster[axis];
    default:
      return cluster[axis];
  }
}
static_assert(static_cast<int>(SpecialRegister::kClusterNctaidX) == 21, "eight triples, in the order of axis_value");

uint32_t special_value(SpecialRegister which, const Engine& engine, const Cta& cta, int warp, uint32_t lane) {
  using enum SpecialRegister;
  const LaunchConfig& c = engine.config();
  if (which < kClusterCtarank) return axis_value(which, c, cta, static_cast<uint32_t>(warp) * kLanes + lane);
  switch (which) {
    case kClusterCtarank:
      return cta.rank;
    case kClusterNctarank:
      return static_cast<uint32_t>(c.cluster.volume());
    case kIsExplicitCluster:
      return c.cluster.volume() > 1;
    case kLaneid:
      return lane;
    case kWarpid:
      return static_cast<uint32_t>(warp);
    case kNwarpid:
      return engine.warps_per_cta();
    case kLanemaskEq:
      return 1u << lane;
    case kLanemaskLe:
      return (2u << lane) - 1;
    case kLanemaskLt:
      return (1u << lane) - 1;
    case kLanemaskGe:
      return ~((1u << lane) - 1);
    case kLanemaskGt:
      return ~((2u << lane) - 1);
    case kSmid:
      return (cta.id[0] + cta.id[1] * c.grid.x) % engine.options().multiprocessors;
    case kNsmid:
      return engine.options().multiprocessors;
    case kDynamicSmemSize:
      return c.dynamic_shared;
    case kTotalSmemSize:
      return engine.shared_bytes();
    default:
      return 1;  // %gridid
  }
}

// A value that is unlikely to give a plausible result if it is read before it is written.
constexpr uint32_t kPoison = 0xDEADBEEF;

}  // namespace

Warp::Warp(Cta& owner, int warp_index, LaneMask existing)
    : cta(owner), engine(owner.engine), index(warp_index), lanes(existing) {
  const Kernel& k = engine.kernel();
  words_.assign(static_cast<size_t>(k.words) * kLanes, kPoison);
  predicates_.assign(static_cast<size_t>(k.predicates), 0);
  groups.push_back({0, existing, false, false});
  for (const auto& c : k.constants) {
    if (c.wide)
      std::fill_n(wide(c.slot), kLanes, c.value);
    else
      std::fill_n(word(c.slot), kLanes, static_cast<uint32_t>(c.value));
  }
  for (const auto& c : k.constant_predicates) predicate(c.slot) = static_cast<LaneMask>(c.value);
  for (const auto& s : k.shared_addresses) {
    const uint32_t address = (s.dynamic ? engine.dynamic_shared_offset() : s.offset) | cta.rank << 24;
    if (s.wide)
      std::fill_n(wide(s.slot), kLanes, uint64_t{address});
    else
      std::fill_n(word(s.slot), kLanes, address);
  }
  for (const auto& p : k.parameter_addresses) {
    std::fill_n(wide(p.slot), kLanes, reinterpret_cast<uint64_t>(engine.parameters()) + p.offset);
  }
  for (const auto& s : k.special_rows) {
    for (uint32_t l = 0; l < kLanes; ++l) word(s.slot)[l] = special_value(s.which, engine, cta, warp_index, l);
  }
  local.assign(static_cast<size_t>(k.local_bytes) * kLanes, std::byte{0xCD});
}

// Puts the group that runs next first: the lowest place among those that may run. False if all wait or are parked.
bool Warp::select() {
  size_t best = groups.size();
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].parked || groups[i].resting) continue;
    if (best == groups.size() || groups[i].pc < groups[best].pc) best = i;
  }
  if (best == groups.size()) return false;
  std::swap(groups[0], groups[best]);
  return true;
}

// Joins to the first group every other that stands at the same place.
void Warp::merge() {
  for (size_t i = 1; i < groups.size();) {
    if (groups[i].pc != groups[0].pc) {
      ++i;
      continue;
    }
    groups[0].lanes |= groups[i].lanes;
    groups[0].parked = groups[0].resting = false;
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Warp::branch(LaneMask taken, int32_t target) {
  LaneGroup& g = groups[0];
  if (taken == g.lanes) {
    g.pc = target;
  } else if (taken == 0) {
    ++g.pc;
  } else {
    g.lanes &= ~taken;
    ++g.pc;
    groups.push_back({target, taken, false, false});
  }
}

void Warp::branch_table(const Instruction& i, LaneMask taken) {
  const int32_t origin = groups[0].pc;
  const LaneMask rest = groups[0].lanes & ~taken;
  groups.erase(groups.begin());
  if (rest) groups.push_back({origin + 1, rest, false, false});
  for (LaneMask left = taken; left != 0;) {
    const uint32_t choice = word(i.a)[first_lane(left)];
    LaneMask same = 0;
    for_each_lane(left, [&](int l) { same |= word(i.a)[l] == choice ? 1u << l : 0u; });
    if (choice >= i.list.size()) throw ExecutionFault{FindingKind::kOutOfBounds, "branch index past its table"};
    groups.push_back({i.list[choice], same, false, false});
    left &= ~same;
  }
}

// Lanes that end here. They count as arrived for the lanes that stay.
void Warp::retire(LaneMask ending) {
  LaneGroup& g = groups[0];
  exited |= ending;
  g.lanes &= ~ending;
  engine.progress();
  if (g.lanes == 0)
    groups.erase(groups.begin());
  else
    ++g.pc;
  for (LaneGroup& other : groups) other.parked = false;
}

void Warp::check_in_flight(const Instruction& i) {
  if (in_flight.touched_by(i, i.role == Role::kRegisterCopy)) {
    engine.add_finding(FindingKind::kRace, pc, -4,
                       "touches a register of an asynchronous instruction that was not waited for");
  }
}

// Runs the first group until it meets another, ends, waits, or the quantum is used.
Warp::StopReason Warp::step_group(int& quantum) {
  const std::vector<Instruction>& code = engine.kernel().code;
  Statistics& statistics = engine.statistics();
  int32_t limit = INT_MAX;
  bool any_parked = false;
  for (size_t i = 1; i < groups.size(); ++i) {
    any_parked |= groups[i].parked || groups[i].resting;
    if (groups[i].pc > groups[0].pc) limit = std::min(limit, groups[i].pc);
  }
  while (quantum-- > 0) {
    LaneGroup& g = groups[0];
    pc = g.pc;
    const Instruction& i = code[static_cast<size_t>(pc)];
    const LaneMask active = guard_lanes(i, g.lanes);
    if (!in_flight.empty() && active && i.role != Role::kMultiply) check_in_flight(i);
    ++statistics.warp_instructions;
    statistics.lane_instructions += static_cast<uint64_t>(std::popcount(active));
    switch (i.flow) {
      case Flow::kNormal:
        if (active) i.handler(*this, i, active);
        ++g.pc;
        break;
      case Flow::kMayStop:
        outcome_ = Outcome::kContinue;
        if (active) i.handler(*this, i, active);
        if (outcome_ == Outcome::kContinue || outcome_ == Outcome::kYield) ++g.pc;
        if (outcome_ == Outcome::kContinue) break;
        g.parked = outcome_ == Outcome::kPark;
        g.resting = !g.parked;
        if (outcome_ == Outcome::kYield) merge();
        return outcome_ == Outcome::kYield ? StopReason::kYield : StopReason::kBlocked;
      case Flow::kBranch:
        branch(active, i.target);
        if (groups.size() > 1) return StopReason::kQuantum;
        break;
      case Flow::kBranchTable:
        branch_table(i, active);
        return StopReason::kQuantum;
      case Flow::kExit:
        retire(active);
        return StopReason::kQuantum;
    }
    if (groups[0].pc >= limit) return StopReason::kQuantum;
    if (any_parked &&
        std::any_of(groups.begin() + 1, groups.end(), [&](const LaneGroup& o) { return o.pc == groups[0].pc; })) {
      return StopReason::kQuantum;
    }
  }
  return StopReason::kQuantum;
}

bool Warp::release_warp_barrier() {
  const std::vector<Instruction>& code = engine.kernel().code;
  for (const LaneGroup& g : groups) {
    if (code[static_cast<size_t>(g.pc)].role != Role::kWarpBarrier) return false;
  }
  for (LaneGroup& g : groups) {
    g.parked = false;
    ++g.pc;
  }
  return true;
}

Warp::StopReason Warp::run(int quantum) {
  StopReason reason = StopReason::kEnd;
  while (!groups.empty() && quantum > 0) {
    if (!select()) {
      const bool all_parked = std::all_of(groups.begin(), groups.end(), [](const LaneGroup& g) { return g.parked; });
      if (!all_parked) break;
      if (release_warp_barrier()) continue;
      pc = groups[0].pc;
      throw ExecutionFault{FindingKind::kConvergence, "lanes " + hex(groups[0].lanes) + " wait here for others of " +
                                                          hex(alive()) + " that never come"};
    }
    reason = step_group(quantum);
    if (!groups.empty()) merge();
  }
  if (groups.empty()) return StopReason::kEnd;
  for (LaneGroup& g : groups) g.resting = false;
  if (quantum <= 0) {
    groups[0].resting = groups.size() > 1;  // let the other groups of the warp go on first
    return StopReason::kQuantum;
  }
  return reason;
}

}  // namespace isobit::ptx
