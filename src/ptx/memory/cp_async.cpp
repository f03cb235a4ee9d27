// cp.async: small copies by every thread, through the generic proxy.
#include <cstring>

#include "ptx/engine/lanes.h"
#include "ptx/memory/async_copies.h"
#include "ptx/memory/commit_groups.h"
#include "ptx/memory/mbarrier_state.h"

namespace isobit::ptx {
namespace {

struct LaneCopy {
  uint64_t from = 0;
  uint32_t to = 0;
  uint32_t bytes = 0;  // read; the rest of the destination is zeroed
};

// a: shared destination, b: global source, c: bytes to read (or none), e: predicate that ignores the source, or none.
void copy(Warp& w, const Instruction& i, LaneMask active) {
  std::array<LaneCopy, kLanes> copies;
  const uint32_t size = i.bytes;
  for_each_lane(active, [&](int l) {
    LaneCopy& c = copies[static_cast<size_t>(l)];
    c.to = static_cast<uint32_t>(effective_address(w, i, l));
    c.from = w.wide(i.b)[l] + static_cast<uint64_t>(i.list.empty() ? 0 : i.list[0]);
    c.bytes = i.c == kNoSlot ? size : w.word(i.c)[l];
    if (i.e != kNoSlot && (w.predicate(i.e) >> l & 1)) c.bytes = 0;
    if (c.to % size != 0) misaligned(c.to, size);
    if (c.from % size != 0) misaligned(c.from, size);
    if (c.bytes > size) throw ExecutionFault{FindingKind::kOutOfBounds, "source size beyond the copy size"};
  });
  Cta* cta = &w.cta;
  const AsyncHandle handle = w.engine.submit(w, [=](AsyncOperation& operation) {
    for_each_lane(active, [&](int l) {
      const LaneCopy& c = copies[static_cast<size_t>(l)];
      const SharedPlace place = locate_shared(*cta, c.to, size, "cp.async");
      std::byte* to = access_shared_async(place, size, true, operation, false);
      if (c.bytes > 0) std::memcpy(to, access_global(cta->engine, c.from, c.bytes, false, operation.pc), c.bytes);
      std::memset(to + c.bytes, 0, size - c.bytes);
    });
  });
  for_each_lane(active, [&](int l) { w.copies[static_cast<size_t>(l)].open.push_back(handle); });
}

void commit_group(Warp& w, const Instruction&, LaneMask active) {
  for_each_lane(active, [&](int l) { commit(w.copies[static_cast<size_t>(l)]); });
}

void wait_group(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    if (!wait_for_groups(w, w.copies[static_cast<size_t>(l)], i.mode)) w.stop(Outcome::kWait);
  });
}

void wait_all(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    CommitGroups& g = w.copies[static_cast<size_t>(l)];
    if (!g.open.empty()) commit(g);
  });
  wait_group(w, i, active);
}

// Arrives on the barrier once this thread's earlier copies are done. `.noinc` counts against the pending arrivals as
// they are.
void arrive_when_done(Warp& w, const Instruction& i, LaneMask active) {
  if (w.engine.options().schedule != Schedule::kEager) {
    throw ExecutionFault{FindingKind::kUnsupported, "cp.async.mbarrier.arrive is modelled in the eager schedule only"};
  }
  for_each_lane(active, [&](int l) {
    MemoryBarrier& b =
        find_memory_barrier(w.cta, static_cast<uint32_t>(effective_address(w, i, l)), w.clock, false, w.pc);
    if (!(i.mode & 1)) ++b.pending;
    for (const AsyncHandle& o : w.copies[static_cast<size_t>(l)].open) b.arriving.join(o->clock);
    if (!w.clock.empty()) b.arriving.join(w.clock);
    arrive_on(w.engine, b, 1);
  });
}

void decode_wait(Decoder& d) {
  d.expect_count(1, 1);
  d.out().mode = static_cast<uint32_t>(d.literal(0));
  d.out().flow = Flow::kMayStop;
  d.out().handler = wait_group;
}

void decode_copy(Decoder& d) {
  Instruction& out = d.out();
  const bool bypass = d.require_any({"ca", "cg"}) == 1;
  d.require_any({"shared", "shared::cta"});
  d.require("global");
  std::string_view rest;
  while (d.take_prefix("L2::", rest)) {
    if (rest == "cache_hint") d.fail("a cache policy operand is not supported");
  }
  d.expect_count(3, 4);
  const uint64_t size = d.literal(2);
  if (size != 16 && (bypass || (size != 4 && size != 8))) d.fail("copy size must be 4, 8 or 16, and 16 for .cg");
  out.bytes = static_cast<uint8_t>(size);
  if (d.count() == 4) {
    const Operand& last = d.operand(3);
    if (last.kind == OperandKind::kRegister && last.type == Type::kPred)
      out.e = d.predicate(last);
    else
      out.c = d.source(3, Type::kU32);
  }
  d.address(1, Space::kGlobal);
  out.b = out.a;
  if (out.immediate != 0) out.list.push_back(static_cast<Slot>(out.immediate));
  d.address(0, Space::kShared);
  out.handler = copy;
}

}  // namespace

void decode_cp_async(Decoder& d) {
  if (d.take("commit_group")) {
    d.expect_count(0, 0);
    d.out().handler = commit_group;
  } else if (d.take("wait_group")) {
    decode_wait(d);
  } else if (d.take("wait_all")) {
    d.expect_count(0, 0);
    d.out().flow = Flow::kMayStop;
    d.out().handler = wait_all;
  } else if (d.take("mbarrier")) {
    d.require("arrive");
    d.out().mode = d.take("noinc");
    d.require_any({"shared", "shared::cta"});
    d.require("b64");
    d.expect_count(1, 1);
    d.address(0, Space::kShared);
    d.out().handler = arrive_when_done;
  } else {
    decode_copy(d);
  }
}

}  // namespace isobit::ptx
