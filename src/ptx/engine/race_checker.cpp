#include "ptx/engine/race_checker.h"

#include "ptx/engine/engine.h"

namespace isobit::ptx {
namespace {

// Far more operations than a pipeline keeps in flight: a slot is used again only after its operation was waited for. A
// reuse that comes too early can hide a race, never invent one.
constexpr size_t kOperationRing = 128;

}  // namespace

RaceChecker::RaceChecker(Engine& engine, size_t ctas, size_t warps_per_cta, uint32_t shared_bytes)
    : engine_(engine),
      warps_(ctas * warps_per_cta),
      tensor_(engine.kernel().uses_tensor_memory),
      agents_(warps_ * (tensor_ ? 5 : 1) + kOperationRing),
      first_operation_(agents_ - kOperationRing),
      next_operation_(first_operation_),
      operation_clock_(kOperationRing, 0),
      cells_(ctas),
      shared_bytes_(shared_bytes) {}

Clock RaceChecker::empty_clock() const {
  Clock clock;
  clock.resize(agents_, tensor_);
  return clock;
}

Clock RaceChecker::initial_clock(int agent) const {
  Clock clock = empty_clock();
  clock.seen[static_cast<size_t>(agent)] = 1;
  return clock;
}

int RaceChecker::new_operation(Clock& clock) {
  const size_t agent = next_operation_;
  next_operation_ = agent + 1 == agents_ ? first_operation_ : agent + 1;
  clock.seen[agent] = ++operation_clock_[agent - first_operation_];
  return static_cast<int>(agent);
}

RaceChecker::Epoch RaceChecker::epoch_of(const Accessor& who, uint8_t mask) {
  return {who.clock->seen[static_cast<size_t>(who.agent)],
          static_cast<uint16_t>(who.agent),
          mask,
          who.async,
          who.atomic,
          who.pc};
}

RaceChecker::Order RaceChecker::order(const Epoch& earlier, const Accessor& later, bool earlier_is_write) {
  if (earlier.agent == later.agent || (earlier.atomic && later.atomic)) return Order::kOrdered;
  const bool unordered = later.clock->seen[earlier.agent] < earlier.clock;
  if (unordered) return Order::kUnordered;
  // Policy: a generic write needs a proxy fence before the asynchronous proxy touches the bytes, a generic read does
  // not.
  const bool crosses = later.async && !earlier.async && earlier_is_write;
  return crosses && later.clock->proxied[earlier.agent] < earlier.clock ? Order::kMissingFence : Order::kOrdered;
}

void RaceChecker::report(const char* what, Order order, const Epoch& earlier, const Accessor& later, uint32_t offset) {
  const Instruction& first = engine_.kernel().code[static_cast<size_t>(earlier.pc)];
  std::string message = std::string(what) + " at shared offset " + hex(offset) + " against line " +
                        std::to_string(first.line) + " [" + std::string(first.text) + "]";
  if (order == Order::kMissingFence) message += ": ordered, but no fence.proxy.async lies between";
  engine_.add_finding(order == Order::kMissingFence ? FindingKind::kProxy : FindingKind::kRace, later.pc, earlier.pc,
                      message);
}

template <size_t N>
void RaceChecker::remember(Epoch (&slots)[N], const Epoch& epoch, const Accessor& who) {
  // The slot of the same agent, a free one, or one whose access is already ordered before this; otherwise the first is
  // forgotten.
  size_t best = 0;
  for (size_t i = 0; i < N; ++i) {
    const Epoch& e = slots[i];
    const bool covered = e.clock == 0 || ((e.bytes & ~epoch.bytes) == 0 &&
                                          (e.agent == epoch.agent || who.clock->seen[e.agent] >= e.clock));
    if (covered) {
      best = i;
      break;
    }
  }
  slots[best] = epoch;
}

void RaceChecker::read_cell(Cell& cell, uint8_t mask, uint32_t offset, const Accessor& who) {
  for (const Epoch& w : cell.writes) {
    if (w.clock == 0 || !(w.bytes & mask)) continue;
    const Order o = order(w, who, true);
    if (o != Order::kOrdered) report("read after an unordered write", o, w, who, offset);
  }
  remember(cell.reads, epoch_of(who, mask), who);
}

void RaceChecker::write_cell(Cell& cell, uint8_t mask, uint32_t offset, const Accessor& who) {
  for (const Epoch& w : cell.writes) {
    if (w.clock == 0 || !(w.bytes & mask)) continue;
    const Order o = order(w, who, true);
    if (o != Order::kOrdered) report("write after an unordered write", o, w, who, offset);
  }
  for (Epoch& r : cell.reads) {
    if (r.clock == 0 || !(r.bytes & mask)) continue;
    const Order o = order(r, who, false);
    if (o != Order::kOrdered) report("write after an unordered read", o, r, who, offset);
    if ((r.bytes & ~mask) == 0) r.clock = 0;
  }
  remember(cell.writes, epoch_of(who, mask), who);
}

void RaceChecker::access(size_t cta, uint32_t offset, uint32_t bytes, bool write, const Accessor& who) {
  std::vector<Cell>& cells = cells_[cta];
  if (cells.empty()) cells.resize(shared_bytes_ / 4 + 1);
  const uint32_t end = offset + bytes;
  for (uint32_t word = offset / 4; word * 4 < end; ++word) {
    uint8_t mask = 0xF;
    if (word * 4 < offset) mask &= static_cast<uint8_t>(0xF << (offset - word * 4));
    if (word * 4 + 4 > end) mask &= static_cast<uint8_t>(0xF >> (word * 4 + 4 - end));
    write ? write_cell(cells[word], mask, word * 4, who) : read_cell(cells[word], mask, word * 4, who);
  }
}

}  // namespace isobit::ptx
