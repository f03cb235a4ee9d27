// Named barriers, cluster barriers, warp barriers and fences.
#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"
#include "ptx/memory/ordering.h"
#include "ptx/values/collective.h"

namespace isobit::ptx {
namespace {

enum class Reduction : uint32_t { kNone, kPopc, kAnd, kOr };

// a: barrier id, b: thread count or none, c: predicate of a reduction, d: its result. mode: Reduction.

uint32_t expected_threads(Warp& w, const Instruction& i, int lane) {
  if (i.b == kNoSlot) return w.engine.warps_per_cta() * kLanes;
  const uint32_t count = w.word(i.b)[lane];
  if (count == 0 || count % kLanes != 0) {
    throw ExecutionFault{FindingKind::kBarrierMisuse,
                         "thread count " + std::to_string(count) + " is not a multiple of 32"};
  }
  return count;
}

NamedBarrier& find_barrier(Warp& w, const Instruction& i, LaneMask active, uint32_t& id) {
  id = w.word(i.a)[first_lane(active)];
  for_each_lane(active, [&](int l) {
    if (w.word(i.a)[l] != id) throw ExecutionFault{FindingKind::kBarrierMisuse, "lanes name different barriers"};
  });
  if (id >= 16) throw ExecutionFault{FindingKind::kBarrierMisuse, "barrier " + std::to_string(id) + " does not exist"};
  return w.cta.barriers[id];
}

void complete_barrier(Warp& w, NamedBarrier& b) {
  b.arrived = 0;
  b.expected = 0;
  ++b.generation;
  b.passed = b.pending;
  b.result_popcount = b.popcount;
  b.result_all = b.all;
  b.result_any = b.any;
  b.popcount = 0;
  b.all = true;
  b.any = false;
  w.engine.progress();
}

void arrive_at(Warp& w, const Instruction& i, LaneMask active, NamedBarrier& b, uint32_t id) {
  const uint32_t expected = expected_threads(w, i, first_lane(active));
  if (b.expected != 0 && b.expected != expected) {
    throw ExecutionFault{FindingKind::kBarrierMisuse, "barrier " + std::to_string(id) + " is used with " +
                                                          std::to_string(expected) + " and with " +
                                                          std::to_string(b.expected) + " threads at once"};
  }
  b.expected = expected;
  b.arrived += kLanes;
  release_into(w, b.pending);
  if (static_cast<Reduction>(i.mode & 7) != Reduction::kNone) {
    const LaneMask p = w.predicate(i.c) & active;
    b.popcount += static_cast<uint32_t>(std::popcount(p));
    b.all &= p == active;
    b.any |= p != 0;
  }
  w.engine.progress();
  if (b.arrived == expected) complete_barrier(w, b);
}

void deliver_reduction(Warp& w, const Instruction& i, LaneMask active, const NamedBarrier& b) {
  switch (static_cast<Reduction>(i.mode & 7)) {
    case Reduction::kNone:
      break;
    case Reduction::kPopc:
      for_each_lane(active, [&](int l) { w.word(i.d)[l] = b.result_popcount; });
      break;
    case Reduction::kAnd:
      w.set_predicate(i.d, b.result_all ? kAllLanes : 0, active);
      break;
    case Reduction::kOr:
      w.set_predicate(i.d, b.result_any ? kAllLanes : 0, active);
      break;
  }
}

void barrier_sync(Warp& w, const Instruction& i, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return;
  uint32_t id = 0;
  NamedBarrier& b = find_barrier(w, i, active, id);
  if (!w.waiting[id]) {
    w.generation[id] = b.generation;
    w.waiting[id] = true;
    arrive_at(w, i, active, b, id);
  }
  if (b.generation == w.generation[id]) return w.stop(Outcome::kWait);
  w.waiting[id] = false;
  acquire_from(w, b.passed);
  deliver_reduction(w, i, active, b);
}

void barrier_arrive(Warp& w, const Instruction& i, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return;
  uint32_t id = 0;
  NamedBarrier& b = find_barrier(w, i, active, id);
  arrive_at(w, i, active, b, id);
}

void warp_sync(Warp& w, const Instruction& i, LaneMask active) {
  converged(w, w.word(i.a)[first_lane(active)], active);
}

// mode 1: relaxed, which passes on only what an earlier fence released.
void cluster_arrive(Warp& w, const Instruction& i, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return;
  Cluster& c = w.cta.cluster;
  if (w.cluster_arrived)
    throw ExecutionFault{FindingKind::kBarrierMisuse, "a second cluster arrival without a wait between"};
  w.cluster_arrived = true;
  w.cluster_generation = c.generation;
  if (i.mode & 1)
    c.pending.join(w.released);
  else
    release_into(w, c.pending);
  w.engine.progress();
  if (++c.arrived == c.ctas.size() * w.engine.warps_per_cta()) {
    c.arrived = 0;
    ++c.generation;
    c.passed = c.pending;
  }
}

void cluster_wait(Warp& w, const Instruction&, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return;
  Cluster& c = w.cta.cluster;
  if (!w.cluster_arrived) throw ExecutionFault{FindingKind::kBarrierMisuse, "a cluster wait without an arrival"};
  if (c.generation == w.cluster_generation) return w.stop(Outcome::kWait);
  w.cluster_arrived = false;
  acquire_from(w, c.passed);
}

void memory_fence(Warp& w, const Instruction&, LaneMask) { fence(w); }

void proxy_fence(Warp& w, const Instruction&, LaneMask) { w.clock.proxy_fence(); }

// Barriers that this warp initialised become usable by asynchronous operations.
void init_fence(Warp& w, const Instruction&, LaneMask) {
  for (auto& [offset, barrier] : w.cta.memory_barriers) {
    if (barrier.init_agent == w.agent) barrier.init_fenced = true;
  }
  fence(w);
}

void decode_cluster(Decoder& d) {
  const bool arrive = d.require_any({"arrive", "wait"}) == 0;
  const auto order = d.take_any({"relaxed", "release", "acquire"});
  d.take("aligned");
  d.expect_count(0, 0);
  d.out().mode = arrive && order == size_t{0};
  d.out().flow = Flow::kMayStop;
  d.out().handler = arrive ? cluster_arrive : cluster_wait;
}

void decode_named(Decoder& d, bool arrive, Reduction reduction) {
  Instruction& out = d.out();
  d.take("cta");
  const bool has_result = reduction != Reduction::kNone;
  const size_t first = has_result ? 1 : 0;
  size_t sources = d.count() - first - first;  // id, and perhaps a count
  if (d.count() < 1 + 2 * first || sources > 2) d.fail("wrong number of operands");
  out.a = d.source(first, Type::kU32);
  if (sources == 2) out.b = d.source(first + 1, Type::kU32);
  if (arrive && sources != 2) d.fail("an arrival needs a thread count");
  if (has_result) {
    out.d = reduction == Reduction::kPopc ? d.destination(0, Type::kU32) : d.predicate_destination(d.operand(0));
    out.c = d.predicate(d.count() - 1);
  }
  out.mode = static_cast<uint32_t>(reduction);
  out.flow = Flow::kMayStop;
  out.handler = arrive ? barrier_arrive : barrier_sync;
}

Reduction take_reduction(Decoder& d) {
  const size_t op = d.require_any({"popc", "and", "or"});
  d.require(op == 0 ? "u32" : "pred");
  return static_cast<Reduction>(op + 1);
}

}  // namespace

void decode_bar(Decoder& d) {
  if (d.take("warp")) {
    d.require("sync");
    d.expect_count(1, 1);
    d.out().a = d.source(0, Type::kB32);
    d.out().flow = Flow::kMayStop;
    d.out().role = Role::kWarpBarrier;
    d.out().handler = warp_sync;
    return;
  }
  const size_t form = d.require_any({"sync", "arrive", "red"});
  decode_named(d, form == 1, form == 2 ? take_reduction(d) : Reduction::kNone);
}

void decode_barrier(Decoder& d) {
  if (d.take("cluster")) return decode_cluster(d);
  const size_t form = d.require_any({"sync", "arrive", "red"});
  d.take("aligned");
  decode_named(d, form == 1, form == 2 ? take_reduction(d) : Reduction::kNone);
}

void decode_fence(Decoder& d) {
  d.expect_count(0, 0);
  d.out().handler = memory_fence;
  if (d.take("mbarrier_init")) {
    d.require("release");
    d.require("cluster");
    d.out().handler = init_fence;
    return;
  }
  if (d.take("proxy")) {
    const size_t proxy = d.require_any({"async", "async::generic", "async.global", "alias", "tensormap::generic"});
    if (proxy > 1) d.fail("this proxy fence is not supported");
    d.take_any({"global", "shared::cta", "shared::cluster"});
    d.out().handler = proxy_fence;
    return;
  }
  d.take_any({"sc", "acq_rel", "acquire", "release"});
  d.require_any({"cta", "cluster", "gpu", "sys"});
}

void decode_membar(Decoder& d) {
  d.expect_count(0, 0);
  d.require_any({"cta", "gl", "sys"});
  d.out().handler = memory_fence;
}

}  // namespace isobit::ptx
