// tcgen05 by whole warps: allocation, loads and stores between registers and tensor memory, waits and fences.
#include <cstring>

#include "ptx/engine/memory_access.h"
#include "ptx/matrix/tcgen05.h"
#include "ptx/values/collective.h"

namespace isobit::ptx {
namespace {

// As converged(), but lanes that have ended are missed too.
bool whole_warp(Warp& w, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return false;
  if (active == kAllLanes) return true;
  throw ExecutionFault{FindingKind::kConvergence, "lanes " + hex(~active) + " have ended or do not exist"};
}

uint32_t uniform(Warp& w, Slot slot, const char* what) {
  const uint32_t value = w.word(slot)[0];
  for (int l = 1; l < kLanes; ++l) {
    if (w.word(slot)[l] != value)
      throw ExecutionFault{FindingKind::kConvergence, "lanes give different " + std::string(what)};
  }
  return value;
}

// a + immediate: where the address goes; b: columns.
void allocate(Warp& w, const Instruction& i, LaneMask active) {
  if (!whole_warp(w, active)) return;
  // Which columns come depends on what else runs on the multiprocessor; random schedules do not begin at 0.
  const bool highest = w.engine.options().schedule == Schedule::kRandom;
  const auto column = w.cta.tensor.allocate(uniform(w, i.b, "numbers of columns"), highest);
  if (!column) return w.stop(Outcome::kWait);
  const uint32_t address = *column;
  std::memcpy(access_memory(w, i.space, effective_address(w, i, 0), 0, 4, true), &address, 4);
  w.engine.progress();
}

void release(Warp& w, const Instruction& i, LaneMask active) {
  if (!whole_warp(w, active)) return;
  const uint32_t columns = uniform(w, i.b, "numbers of columns");
  w.cta.tensor.release(w.engine, uniform(w, i.a, "addresses"), columns, tensor_release(w));
  w.engine.progress();
}

void relinquish(Warp& w, const Instruction&, LaneMask active) {
  if (whole_warp(w, active)) w.cta.tensor.relinquish();
}

// Warp w of each four reaches lanes 32w to 32w + 31.
TensorRegion region_of(Warp& w, const Instruction& i) {
  const uint32_t address = uniform(w, i.a, "addresses") + static_cast<uint32_t>(i.immediate);
  const uint32_t first = static_cast<uint32_t>(w.index) % 4 * kLanes;
  if (tensor_lane(address) != first) {
    throw ExecutionFault{FindingKind::kTensorMemory, "lane " + std::to_string(tensor_lane(address)) + ": expected " +
                                                         std::to_string(first) + " for warp " +
                                                         std::to_string(w.index) + " of the CTA"};
  }
  return {first, kLanes, tensor_column(address), static_cast<uint32_t>(i.list.size())};
}

void load(Warp& w, const Instruction& i, LaneMask active) {
  if (!whole_warp(w, active)) return;
  const uint32_t* from = w.cta.tensor.access(w.engine, region_of(w, i), false, next_tensor_load(w));
  for (size_t k = 0; k < i.list.size(); ++k) {
    uint32_t* to = w.word(i.list[k]);
    for (size_t l = 0; l < kLanes; ++l) to[l] = from[l * kTensorColumns + k];
  }
  if (w.engine.options().check_races) w.in_flight.start(&w.tensor.loads, i.list);
}

void store(Warp& w, const Instruction& i, LaneMask active) {
  if (!whole_warp(w, active)) return;
  uint32_t* to = w.cta.tensor.access(w.engine, region_of(w, i), true, next_tensor_store(w));
  for (size_t k = 0; k < i.list.size(); ++k) {
    const uint32_t* from = w.word(i.list[k]);
    for (size_t l = 0; l < kLanes; ++l) to[l * kTensorColumns + k] = from[l];
  }
}

void wait_loads(Warp& w, const Instruction&, LaneMask active) {
  if (!whole_warp(w, active)) return;
  finish_tensor_loads(w);
  w.in_flight.finish([&](const void* operation) { return operation == &w.tensor.loads; });
}

void wait_stores(Warp& w, const Instruction&, LaneMask active) {
  if (whole_warp(w, active)) finish_tensor_stores(w);
}

void fence_before(Warp& w, const Instruction&, LaneMask) { before_thread_sync(w); }
void fence_after(Warp& w, const Instruction&, LaneMask) { after_thread_sync(w); }

void require_whole_warp(Decoder& d) {
  d.require("sync");
  d.require("aligned");
  d.out().flow = Flow::kMayStop;
}

}  // namespace

void decode_tensor_allocation(Decoder& d, size_t form) {
  Instruction& out = d.out();
  if (d.take("cta_group::2")) d.fail("pairs of CTAs are not supported");
  d.require("cta_group::1");
  require_whole_warp(d);
  d.expect_count(form == 2 ? 0 : 2, form == 2 ? 0 : 2);
  if (form == 2) {
    out.handler = relinquish;
    return;
  }
  const bool shared = form == 0 && d.take("shared::cta");
  d.require("b32");
  if (form == 0)
    d.address(0, shared ? Space::kShared : Space::kGeneric);
  else
    out.a = d.source(0, Type::kB32);
  out.b = d.source(1, Type::kU32);
  out.handler = form == 0 ? allocate : release;
}

void decode_tensor_transfer(Decoder& d, bool is_load) {
  Instruction& out = d.out();
  require_whole_warp(d);
  d.require("32x32b");
  const size_t power = d.require_any({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  d.require("b32");
  d.expect_count(2, 2);
  const Operand& registers = d.operand(is_load ? 0 : 1);
  const auto add = [&](const Operand& o) {
    out.list.push_back(is_load ? d.destination(o, Type::kB32) : d.source(o, Type::kB32));
  };
  if (registers.kind == OperandKind::kVector) {
    for (const Operand& part : registers.parts) add(part);
  } else {
    add(registers);
  }
  if (out.list.size() != size_t{1} << power) d.fail("the number of registers does not match the modifier");
  d.address(is_load ? 1 : 0, Space::kShared);  // 32 bits and an offset, as in shared memory
  out.handler = is_load ? load : store;
}

void decode_tensor_wait(Decoder& d, bool is_load) {
  require_whole_warp(d);
  d.expect_count(0, 0);
  d.out().handler = is_load ? wait_loads : wait_stores;
}

void decode_tensor_fence(Decoder& d, bool after) {
  d.expect_count(0, 0);
  d.out().handler = after ? fence_after : fence_before;
}

}  // namespace isobit::ptx
