// clusterlaunchcontrol: a running cluster takes the place in the grid of one that has not started.
#include <cstring>

#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"
#include "ptx/memory/mbarrier_state.h"

namespace isobit::ptx {
namespace {

constexpr uint32_t kResponseBytes = 16;

// The opaque response, here: the grid position of the cluster's first CTA, and 1 if there was one.
struct Response {
  uint32_t first[3];
  uint32_t cancelled;
};
static_assert(sizeof(Response) == kResponseBytes);

// a: place of the response, b: barrier; mode 1: to every CTA of the cluster.
void try_cancel(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const uint32_t to = w.word(i.a)[l], barrier = w.word(i.b)[l];
    if (to % kResponseBytes != 0) misaligned(to, kResponseBytes);
    const bool all = i.mode & 1;
    const uint32_t ranks = all ? (1u << w.cta.cluster.ctas.size()) - 1 : 1u << shared_rank(to);
    Response response{};
    if (const auto first = w.engine.take_cluster()) {
      std::copy_n(first->begin(), 3, response.first);
      response.cancelled = 1;
    }
    Cta* cta = &w.cta;
    w.engine.submit(w, [=](AsyncOperation& operation) {
      for_each_lane(ranks, [&](int rank) {
        const uint32_t window = static_cast<uint32_t>(rank) << 24;
        const SharedPlace place = locate_shared(*cta, shared_offset(to) | window, kResponseBytes, "try_cancel");
        std::memcpy(access_shared_async(place, kResponseBytes, true, operation, true), &response, kResponseBytes);
        complete_bytes(cta->engine,
                       find_memory_barrier(*cta, shared_offset(barrier) | window, operation.clock, true, operation.pc),
                       kResponseBytes, operation.clock);
      });
    });
  });
}

Response response_of(Warp& w, const Instruction& i, int lane) {
  Response r;
  std::memcpy(&r, w.wide(i.a) + lane, 8);
  std::memcpy(&r.first[2], w.wide(i.a + 2) + lane, 8);
  return r;
}

void is_canceled(Warp& w, const Instruction& i, LaneMask active) {
  LaneMask yes = 0;
  for_each_lane(active, [&](int l) { yes |= response_of(w, i, l).cancelled ? 1u << l : 0u; });
  w.set_predicate(i.d, yes, active);
}

// list: registers for x, y and z; kNoSlot where nothing is wanted.
void get_first_ctaid(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const Response r = response_of(w, i, l);
    if (!r.cancelled) throw ExecutionFault{FindingKind::kLaunch, "the position of a cluster that was not cancelled"};
    for (size_t k = 0; k < 3; ++k) {
      if (i.list[k] != kNoSlot) w.word(i.list[k])[l] = r.first[k];
    }
  });
}

void decode_try_cancel(Decoder& d) {
  Instruction& out = d.out();
  d.require("async");
  d.take("shared::cta");
  d.require("mbarrier::complete_tx::bytes");
  out.mode = d.take("multicast::cluster::all");
  d.require("b128");
  d.expect_count(2, 2);
  out.a = d.plain_address(d.operand(0), 32);
  out.b = d.plain_address(d.operand(1), 32);
  out.handler = try_cancel;
}

void decode_query(Decoder& d) {
  Instruction& out = d.out();
  d.require("b128");
  d.expect_count(2, 2);
  out.a = d.source(1, Type::kB128);
  if (d.take("is_canceled")) {
    d.require("pred");
    out.d = d.predicate_destination(d.operand(0));
    out.handler = is_canceled;
    return;
  }
  out.list.assign(3, kNoSlot);
  const auto axis = d.take_any({"get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z"});
  if (axis) {
    out.list[*axis] = d.destination(0, Type::kB32);
  } else {
    d.require("get_first_ctaid");
    d.require("v4");
    const Operand& o = d.operand(0);
    if (o.kind != OperandKind::kVector || o.parts.size() != 4) d.fail("expected four registers");
    for (size_t k = 0; k < 3; ++k) out.list[k] = d.destination(o.parts[k], Type::kB32);
  }
  d.require("b32");
  out.handler = get_first_ctaid;
}

}  // namespace

void decode_clusterlaunchcontrol(Decoder& d) {
  if (d.require_any({"try_cancel", "query_cancel"}) == 0)
    decode_try_cancel(d);
  else
    decode_query(d);
}

}  // namespace isobit::ptx
