// cp.async.bulk: linear copies by the copy engine, and its commit groups.
#include <cstring>

#include "ptx/engine/lanes.h"
#include "ptx/memory/async_copies.h"
#include "ptx/memory/commit_groups.h"
#include "ptx/memory/mbarrier_state.h"

namespace isobit::ptx {
namespace {

void check_bulk(uint64_t shared, uint64_t other, uint32_t bytes) {
  if (shared % 16 != 0) misaligned(shared, 16);
  if (other % 16 != 0) misaligned(other, 16);
  if (bytes % 16 != 0)
    throw ExecutionFault{FindingKind::kMisaligned, "size " + std::to_string(bytes) + " is not a multiple of 16"};
}

// a: destination, b: source, c: size, e: barrier; list[0]: multicast mask. Global to shared.
void load(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const uint32_t to = w.word(i.a)[l], bytes = w.word(i.c)[l], barrier = w.word(i.e)[l];
    const uint64_t from = w.wide(i.b)[l];
    check_bulk(to, from, bytes);
    const bool multicast = !i.list.empty();
    const uint32_t ranks = multicast ? w.word(i.list[0])[l] & 0xFFFF : 1u << shared_rank(to);
    Cta* cta = &w.cta;
    w.engine.submit(w, [=](AsyncOperation& operation) {
      const std::byte* source = access_global(cta->engine, from, bytes, false, operation.pc);
      for_each_lane(ranks, [&](int rank) {
        const uint32_t window = static_cast<uint32_t>(rank) << 24;
        const SharedPlace place = locate_shared(*cta, shared_offset(to) | window, bytes, "bulk copy");
        std::memcpy(access_shared_async(place, bytes, true, operation, true), source, bytes);
        const uint32_t signal = multicast ? shared_offset(barrier) | window : barrier;
        complete_bytes(cta->engine, find_memory_barrier(*cta, signal, operation.clock, true, operation.pc), bytes,
                       operation.clock);
      });
    });
  });
}

// Own shared memory to shared memory of the cluster.
void send(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const uint32_t to = w.word(i.a)[l], from = w.word(i.b)[l], bytes = w.word(i.c)[l], barrier = w.word(i.e)[l];
    check_bulk(to, from, bytes);
    Cta* cta = &w.cta;
    w.engine.submit(w, [=](AsyncOperation& operation) {
      const SharedPlace source = locate_shared(*cta, from, bytes, "bulk copy");
      const SharedPlace place = locate_shared(*cta, to, bytes, "bulk copy");
      const std::byte* data = access_shared_async(source, bytes, false, operation, true);
      std::memcpy(access_shared_async(place, bytes, true, operation, true), data, bytes);
      complete_bytes(cta->engine, find_memory_barrier(*cta, barrier, operation.clock, true, operation.pc), bytes,
                     operation.clock);
    });
  });
}

// Shared to global, part of the thread's open group.
void store(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const uint64_t to = w.wide(i.a)[l];
    const uint32_t from = w.word(i.b)[l], bytes = w.word(i.c)[l];
    check_bulk(from, to, bytes);
    Cta* cta = &w.cta;
    const AsyncHandle handle = w.engine.submit(w, [=](AsyncOperation& operation) {
      const SharedPlace source = locate_shared(*cta, from, bytes, "bulk copy");
      const std::byte* data = access_shared_async(source, bytes, false, operation, true);
      std::memcpy(access_global(cta->engine, to, bytes, true, operation.pc), data, bytes);
    });
    w.bulk_copies[static_cast<size_t>(l)].open.push_back(handle);
  });
}

void commit_group(Warp& w, const Instruction&, LaneMask active) {
  for_each_lane(active, [&](int l) { commit(w.bulk_copies[static_cast<size_t>(l)]); });
}

void wait_group(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    if (!wait_for_groups(w, w.bulk_copies[static_cast<size_t>(l)], i.mode)) w.stop(Outcome::kWait);
  });
}

}  // namespace

void decode_bulk_group(Decoder& d, bool wait) {
  if (!wait) {
    d.expect_count(0, 0);
    d.out().handler = commit_group;
    return;
  }
  d.take("read");
  d.expect_count(1, 1);
  d.out().mode = static_cast<uint32_t>(d.literal(0));
  d.out().flow = Flow::kMayStop;
  d.out().handler = wait_group;
}

void decode_bulk_copy(Decoder& d) {
  Instruction& out = d.out();
  // The first state space is the destination's.
  const auto& modifiers = d.statement().modifiers;
  const auto first_is = [&](std::string_view space) { return modifiers.size() > 2 && modifiers[2] == space; };
  const bool to_global = first_is("global"),
             within = !to_global && !d.left().empty() && modifiers.size() > 3 && modifiers[3] == "shared::cta";
  const bool hint = d.take("L2::cache_hint"), multicast = d.take("multicast::cluster");
  d.take("global");
  while (d.take_any({"shared::cluster", "shared::cta"})) {
  }
  d.require(to_global ? "bulk_group" : "mbarrier::complete_tx::bytes");
  const size_t operands = (to_global ? 3u : 4u) + multicast + hint;
  d.expect_count(operands, operands);
  out.a = d.plain_address(d.operand(0), to_global ? 64 : 32);
  out.b = d.plain_address(d.operand(1), to_global || within ? 32 : 64);
  out.c = d.source(2, Type::kU32);
  if (!to_global) out.e = d.plain_address(d.operand(3), 32);
  if (multicast) out.list.push_back(d.source(4, Type::kB16));
  if (hint) d.source(operands - 1, Type::kB64);
  out.handler = to_global ? store : within ? send : load;
}

void decode_cp(Decoder& d) {
  d.require("async");
  if (!d.take("bulk")) return decode_cp_async(d);
  if (d.take("commit_group")) return decode_bulk_group(d, false);
  if (d.take("wait_group")) return decode_bulk_group(d, true);
  if (d.take("tensor")) return decode_tensor_copy(d);
  decode_bulk_copy(d);
}

}  // namespace isobit::ptx
