// Instructions over the lanes of a warp: shuffles, votes, matches, reductions, election.
#include "ptx/values/collective.h"

#include <algorithm>
#include <optional>

#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"

namespace isobit::ptx {
namespace {

enum class Shuffle : uint32_t { kUp, kDown, kButterfly, kIndex };
enum class Vote : uint32_t { kAll, kAny, kUniform, kBallot };
enum class Reduce : uint32_t { kAdd, kMin, kMax, kAnd, kOr, kXor };

// The member mask of `slot`, the same in all active lanes and holding each of them; empty if lanes still have to come.
std::optional<LaneMask> take_members(Warp& w, Slot slot, LaneMask active) {
  const LaneMask members = w.word(slot)[first_lane(active)];
  for_each_lane(active, [&](int l) {
    if (w.word(slot)[l] != members)
      throw ExecutionFault{FindingKind::kConvergence, "lanes name different member masks"};
  });
  if (active & ~members)
    throw ExecutionFault{FindingKind::kConvergence, "a lane outside of the member mask " + hex(members)};
  if (!converged(w, members, active)) return std::nullopt;
  return members;
}

// Source lane of lane l, and whether it is inside the segment.
std::pair<int, bool> shuffle_source(Shuffle mode, int l, uint32_t b, uint32_t c) {
  const int offset = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31),
            segment = static_cast<int>(c >> 8 & 31);
  const int most = (l & segment) | (clamp & ~segment), least = l & segment;
  int source = 0;
  bool inside = false;
  switch (mode) {
    case Shuffle::kUp:
      source = l - offset;
      inside = source >= most;
      break;
    case Shuffle::kDown:
      source = l + offset;
      inside = source <= most;
      break;
    case Shuffle::kButterfly:
      source = l ^ offset;
      inside = source <= most;
      break;
    case Shuffle::kIndex:
      source = least | (offset & ~segment);
      inside = source <= most;
      break;
  }
  return {inside ? source : l, inside};
}

void shuffle(Warp& w, const Instruction& i, LaneMask active) {
  if (!take_members(w, i.e, active)) return;
  uint32_t values[kLanes];
  std::copy_n(w.word(i.a), kLanes, values);
  LaneMask inside = 0;
  uint32_t results[kLanes];
  for_each_lane(active, [&](int l) {
    const auto [source, ok] = shuffle_source(static_cast<Shuffle>(i.mode), l, w.word(i.b)[l], w.word(i.c)[l]);
    if (!(active >> source & 1))
      throw ExecutionFault{FindingKind::kConvergence, "reads lane " + std::to_string(source) + ", which is not active"};
    results[l] = values[source];
    inside |= ok ? 1u << l : 0u;
  });
  for_each_lane(active, [&](int l) { w.word(i.d)[l] = results[l]; });
  if (i.d2 != kNoSlot) w.set_predicate(i.d2, inside, active);
}

// mode bit 2: the predicate is negated.
void vote(Warp& w, const Instruction& i, LaneMask active) {
  if (!take_members(w, i.e, active)) return;
  const LaneMask p = (i.mode & 4 ? ~w.predicate(i.a) : w.predicate(i.a)) & active;
  const auto decide = [&](bool result) { w.set_predicate(i.d, result ? kAllLanes : 0, active); };
  switch (static_cast<Vote>(i.mode & 3)) {
    case Vote::kAll:
      return decide(p == active);
    case Vote::kAny:
      return decide(p != 0);
    case Vote::kUniform:
      return decide(p == 0 || p == active);
    case Vote::kBallot:
      for_each_lane(active, [&](int l) { w.word(i.d)[l] = p; });
  }
}

template <class T, bool All>
void match(Warp& w, const Instruction& i, LaneMask active) {
  if (!take_members(w, i.e, active)) return;
  const T* a = w.row<T>(i.a);
  uint32_t results[kLanes];
  LaneMask equal_to_all = 0;
  for_each_lane(active, [&](int l) {
    LaneMask same = 0;
    for_each_lane(active, [&](int k) { same |= a[k] == a[l] ? 1u << k : 0u; });
    results[l] = All ? (same == active ? active : 0) : same;
    equal_to_all |= same == active ? 1u << l : 0u;
  });
  for_each_lane(active, [&](int l) { w.word(i.d)[l] = results[l]; });
  if (i.d2 != kNoSlot) w.set_predicate(i.d2, equal_to_all, active);
}

template <class T>
void reduce(Warp& w, const Instruction& i, LaneMask active) {
  if (!take_members(w, i.e, active)) return;
  const T* a = w.row<T>(i.a);
  T result = a[first_lane(active)];
  for_each_lane(active & (active - 1), [&](int l) {
    switch (static_cast<Reduce>(i.mode)) {
      case Reduce::kAdd:
        result = static_cast<T>(static_cast<uint32_t>(result) + static_cast<uint32_t>(a[l]));
        break;
      case Reduce::kMin:
        result = std::min(result, a[l]);
        break;
      case Reduce::kMax:
        result = std::max(result, a[l]);
        break;
      case Reduce::kAnd:
        result &= a[l];
        break;
      case Reduce::kOr:
        result |= a[l];
        break;
      case Reduce::kXor:
        result ^= a[l];
        break;
    }
  });
  T* d = w.row<T>(i.d);
  for_each_lane(active, [&](int l) { d[l] = result; });
}

// The hardware chooses a leader; here it is the lowest lane.
void elect(Warp& w, const Instruction& i, LaneMask active) {
  if (!take_members(w, i.e, active)) return;
  const int leader = first_lane(active);
  for_each_lane(active, [&](int l) { w.word(i.d)[l] = static_cast<uint32_t>(leader); });
  w.set_predicate(i.d2, 1u << leader, active);
}

void active_mask(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) { w.word(i.d)[l] = active; });
}

void collective(Decoder& d, Handler handler) {
  d.out().flow = Flow::kMayStop;
  d.out().handler = handler;
}

void take_pair(Decoder& d, Type type) {
  d.out().d = d.destination(0, type);
  if (!d.operand(0).parts.empty()) d.out().d2 = d.predicate_destination(d.operand(0).parts[0]);
}

}  // namespace

void decode_shfl(Decoder& d) {
  d.require("sync");
  d.out().mode = static_cast<uint32_t>(d.require_any({"up", "down", "bfly", "idx"}));
  d.require("b32");
  d.expect_count(5, 5);
  take_pair(d, Type::kB32);
  d.out().a = d.source(1, Type::kB32);
  d.out().b = d.source(2, Type::kB32);
  d.out().c = d.source(3, Type::kB32);
  d.out().e = d.source(4, Type::kB32);
  collective(d, shuffle);
}

void decode_vote(Decoder& d) {
  d.require("sync");
  const size_t form = d.require_any({"all", "any", "uni", "ballot"});
  const bool ballot = form == 3;
  d.require(ballot ? "b32" : "pred");
  d.expect_count(3, 3);
  d.out().d = ballot ? d.destination(0, Type::kB32) : d.predicate_destination(d.operand(0));
  Operand p = d.operand(1);
  d.out().mode = static_cast<uint32_t>(form) | (p.negated ? 4u : 0u);
  p.negated = false;
  d.out().a = d.predicate(p);
  d.out().e = d.source(2, Type::kB32);
  collective(d, vote);
}

void decode_match(Decoder& d) {
  const bool all = d.require_any({"any", "all"}) == 1;
  d.require("sync");
  const Type type = d.take_type();
  d.expect_count(3, 3);
  take_pair(d, Type::kB32);
  d.out().a = d.source(1, type);
  d.out().e = d.source(2, Type::kB32);
  if (type == Type::kB32) collective(d, all ? match<uint32_t, true> : match<uint32_t, false>);
  if (type == Type::kB64) collective(d, all ? match<uint64_t, true> : match<uint64_t, false>);
}

void decode_redux(Decoder& d) {
  d.require("sync");
  d.out().mode = static_cast<uint32_t>(d.require_any({"add", "min", "max", "and", "or", "xor"}));
  const Type type = d.take_type();
  d.expect_count(3, 3);
  d.out().d = d.destination(0, type);
  d.out().a = d.source(1, type);
  d.out().e = d.source(2, Type::kB32);
  collective(d, type == Type::kS32                       ? reduce<int32_t>
                : bits_of(type) == 32 && !is_float(type) ? reduce<uint32_t>
                                                         : nullptr);
}

void decode_elect(Decoder& d) {
  d.require("sync");
  d.expect_count(2, 2);
  take_pair(d, Type::kB32);
  if (d.out().d2 == kNoSlot) d.fail("expected a predicate after '|'");
  d.out().e = d.source(1, Type::kB32);
  collective(d, elect);
}

void decode_activemask(Decoder& d) {
  d.require("b32");
  d.expect_count(1, 1);
  d.out().d = d.destination(0, Type::kB32);
  d.out().handler = active_mask;
}

}  // namespace isobit::ptx
