#include "ptx/memory/ordering.h"

namespace isobit::ptx {

std::optional<MemoryOrder> take_memory_order(Decoder& d) {
  constexpr MemoryOrder kOrders[] = {MemoryOrder::kWeak,    MemoryOrder::kRelaxed, MemoryOrder::kRelaxed,
                                     MemoryOrder::kAcquire, MemoryOrder::kRelease, MemoryOrder::kAcquireRelease};
  const auto order = d.take_any({"weak", "relaxed", "volatile", "acquire", "release", "acq_rel"});
  d.take_any({"cta", "cluster", "gpu", "sys"});
  if (!order || *order == 0) return std::nullopt;
  return kOrders[*order];
}

void publish(Warp& w, const Instruction& i, uint64_t location) {
  if (w.clock.empty()) return;
  const bool release = i.order == MemoryOrder::kRelease || i.order == MemoryOrder::kAcquireRelease;
  w.engine.location_clock(location).join(release ? w.clock : w.released);
  if (release) RaceChecker::tick(w.clock, w.agent);
}

void observe(Warp& w, const Instruction& i, uint64_t location) {
  if (w.clock.empty()) return;
  const bool acquire = i.order == MemoryOrder::kAcquire || i.order == MemoryOrder::kAcquireRelease;
  (acquire ? w.clock : w.acquired).join(w.engine.location_clock(location));
}

void fence(Warp& w) {
  if (w.clock.empty()) return;
  w.clock.join(w.acquired);
  w.released = w.clock;
  RaceChecker::tick(w.clock, w.agent);
}

void release_into(Warp& w, Clock& target) {
  if (w.clock.empty()) return;
  target.join(w.clock);
  RaceChecker::tick(w.clock, w.agent);
}

}  // namespace isobit::ptx
