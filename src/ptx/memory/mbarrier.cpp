// mbarrier: arrivals, byte counts, phases.
#include <cstring>

#include "ptx/decode/families.h"
#include "ptx/memory/mbarrier_state.h"
#include "ptx/memory/ordering.h"

namespace isobit::ptx {
namespace {

constexpr uint32_t kMostArrivals = (1u << 20) - 1;
constexpr int64_t kMostBytes = (1 << 20) - 1;

[[noreturn]] void misuse(const std::string& message) { throw ExecutionFault{FindingKind::kBarrierMisuse, message}; }

// The phase completes when nothing is pending, neither arrivals nor bytes.
void complete_if_due(Engine& engine, MemoryBarrier& b) {
  if (b.pending != 0 || b.bytes != 0) return;
  ++b.phase;
  b.pending = b.expected;
  b.passed.join(b.arriving);
  engine.progress();
}

uint32_t shared_address(Warp& w, const Instruction& i, int lane) {
  const uint64_t address = effective_address(w, i, lane);
  if (i.space == Space::kGeneric) {
    if ((address & kWindowMask) != kSharedWindow) {
      throw ExecutionFault{FindingKind::kAccessViolation,
                           "generic address " + hex(address) + " is not in shared memory"};
    }
  } else if (address >> 32) {
    throw ExecutionFault{FindingKind::kOutOfBounds, "address " + hex(address) + " is outside of shared memory"};
  }
  return static_cast<uint32_t>(address);
}

MemoryBarrier& barrier_of(Warp& w, const Instruction& i, int lane) {
  return find_memory_barrier(w.cta, shared_address(w, i, lane), w.clock, false, w.pc);
}

void initialise(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const uint32_t address = shared_address(w, i, l), count = w.word(i.b)[l];
    if (address % 8 != 0) misaligned(address, 8);
    if (count == 0 || count > kMostArrivals)
      misuse("arrival count " + std::to_string(count) + " is not in 1 .. 2^20-1");
    const SharedPlace place = locate_shared(w.cta, address, 8, "mbarrier.init");
    if (place.cta != &w.cta) misuse("mbarrier.init of another CTA's shared memory");
    if (w.cta.memory_barriers.contains(place.offset)) misuse("a barrier is already initialised here");
    std::memset(access_shared(w, address, 8, true), 0, 8);
    MemoryBarrier b;
    b.expected = b.pending = count;
    b.init_agent = w.agent;
    b.init_clock = w.clock.empty() ? 0 : w.clock.seen[static_cast<size_t>(w.agent)];
    w.cta.memory_barriers.emplace(place.offset, std::move(b));
  });
}

void invalidate(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    barrier_of(w, i, l);
    w.cta.memory_barriers.erase(shared_offset(shared_address(w, i, l)));
  });
}

// mode bits of arrivals
constexpr uint32_t kExpect = 1, kDrop = 2, kRelaxed = 4;

// b: byte count of expect_tx, or the arrival count; d: the state before the arrival, if wanted.
void arrive(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    MemoryBarrier& b = barrier_of(w, i, l);
    if (i.mode & kExpect) expect_bytes(b, w.word(i.b)[l]);
    if (i.d != kNoSlot) w.wide(i.d)[l] = b.phase;
    if (i.mode & kDrop) {
      if (b.expected == 0) misuse("arrive_drop on a barrier without participants");
      --b.expected;
    }
    if (!w.clock.empty()) b.arriving.join(i.mode & kRelaxed ? w.released : w.clock);
    arrive_on(w.engine, b, i.mode & kExpect || i.b == kNoSlot ? 1 : w.word(i.b)[l]);
  });
  if (!w.clock.empty()) RaceChecker::tick(w.clock, w.agent);
  w.engine.progress();
}

void expect(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) { expect_bytes(barrier_of(w, i, l), w.word(i.b)[l]); });
}

// mode 1: relaxed; 2: `b` is a parity, else a state.
void test_wait(Warp& w, const Instruction& i, LaneMask active) {
  LaneMask complete = 0;
  for_each_lane(active, [&](int l) {
    MemoryBarrier& b = barrier_of(w, i, l);
    const bool done =
        i.mode & 2 ? (b.phase & 1) != (w.word(i.b)[l] & 1) : b.phase != static_cast<uint32_t>(w.wide(i.b)[l]);
    if (!done) return;
    complete |= 1u << l;
    if (i.mode & 1)
      w.acquired.join(b.passed);
    else
      acquire_from(w, b.passed);
  });
  w.set_predicate(i.d, complete, active);
  if (complete != active) w.stop(Outcome::kYield);
}

void decode_place(Decoder& d, size_t index) {
  const auto space = d.take_any({"shared", "shared::cta", "shared::cluster"});
  d.address(index, space ? Space::kShared : Space::kGeneric);
}

// Returns true for .relaxed.
bool take_semantics(Decoder& d) {
  const auto order = d.take_any({"relaxed", "release", "acquire"});
  d.take_any({"cta", "cluster"});
  return order == size_t{0};
}

void decode_arrive(Decoder& d, bool drop) {
  Instruction& out = d.out();
  if (take_semantics(d)) out.mode |= kRelaxed;
  const bool expects = d.take("expect_tx");
  if (expects) out.mode |= kExpect;
  if (drop) out.mode |= kDrop;
  d.expect_count(expects ? 3 : 2, 3);
  if (d.count() == 3) out.b = d.source(2, Type::kU32);
  if (drop && out.b != kNoSlot && !expects) d.fail("arrive_drop with a count is not supported");
  decode_place(d, 1);
  if (d.operand(0).kind != OperandKind::kSink) out.d = d.destination(0, Type::kB64);
  out.handler = arrive;
}

void decode_wait(Decoder& d) {
  Instruction& out = d.out();
  if (take_semantics(d)) out.mode |= 1;
  const bool parity = d.take("parity");
  if (parity) out.mode |= 2;
  d.expect_count(3, 4);
  out.d = d.predicate_destination(d.operand(0));
  decode_place(d, 1);
  out.b = d.source(2, parity ? Type::kU32 : Type::kB64);
  if (d.count() == 4) d.source(3, Type::kU32);  // how long try_wait may suspend
  out.flow = Flow::kMayStop;
  out.handler = test_wait;
}

}  // namespace

MemoryBarrier& find_memory_barrier(Cta& own, uint32_t address, const Clock& clock, bool async, int32_t pc) {
  if (address % 8 != 0) misaligned(address, 8);
  const SharedPlace place = locate_shared(own, address, 8, "mbarrier");
  const auto it = place.cta->memory_barriers.find(place.offset);
  if (it == place.cta->memory_barriers.end())
    misuse("no barrier is initialised at shared offset " + std::to_string(place.offset));
  MemoryBarrier& b = it->second;
  if (clock.empty()) return b;
  const size_t agent = static_cast<size_t>(b.init_agent);
  if (clock.seen[agent] < b.init_clock) {
    own.engine.add_finding(FindingKind::kRace, pc, -3, "the barrier's initialisation is not ordered before this use");
  } else if (async && !b.init_fenced && clock.proxied[agent] < b.init_clock) {
    own.engine.add_finding(FindingKind::kProxy, pc, -3,
                           "the barrier's initialisation needs fence.mbarrier_init or fence.proxy.async before an "
                           "asynchronous operation signals it");
  }
  return b;
}

void arrive_on(Engine& engine, MemoryBarrier& b, uint32_t count) {
  if (count == 0 || count > b.pending)
    misuse(std::to_string(count) + " arrivals where " + std::to_string(b.pending) + " are pending");
  b.pending -= count;
  complete_if_due(engine, b);
}

void expect_bytes(MemoryBarrier& b, uint32_t bytes) {
  b.bytes += bytes;
  if (b.bytes > kMostBytes) misuse("more than 2^20-1 bytes are expected");
}

void complete_bytes(Engine& engine, MemoryBarrier& b, uint32_t bytes, const Clock& clock) {
  b.bytes -= bytes;
  if (b.bytes < -kMostBytes) misuse("more than 2^20-1 bytes arrived that nobody expects");
  b.arriving.join(clock);
  complete_if_due(engine, b);
}

void decode_mbarrier(Decoder& d) {
  d.require("b64");
  const size_t form = d.require_any({"init", "inval", "arrive", "arrive_drop", "expect_tx", "test_wait", "try_wait"});
  switch (form) {
    case 0:
      d.expect_count(2, 2);
      decode_place(d, 0);
      d.out().b = d.source(1, Type::kU32);
      d.out().handler = initialise;
      return;
    case 1:
      d.expect_count(1, 1);
      decode_place(d, 0);
      d.out().handler = invalidate;
      return;
    case 2:
    case 3:
      return decode_arrive(d, form == 3);
    case 4:
      d.take("relaxed");
      d.take_any({"cta", "cluster"});
      d.expect_count(2, 2);
      decode_place(d, 0);
      d.out().b = d.source(1, Type::kU32);
      d.out().handler = expect;
      return;
    default:
      return decode_wait(d);
  }
}

}  // namespace isobit::ptx
