// atom and red. Lanes take their turn in ascending order.
#include <algorithm>
#include <cstring>

#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"
#include "ptx/engine/memory_access.h"
#include "ptx/memory/ordering.h"

namespace isobit::ptx {
namespace {

enum class Atomic : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExchange, kCompareSwap, kIncrement, kDecrement };

template <Atomic A, class T>
T updated(T old, T value, T compared) {
  if constexpr (A == Atomic::kExchange) return value;
  if constexpr (A == Atomic::kCompareSwap) return old == compared ? value : old;
  if constexpr (std::is_floating_point_v<T>) {
    return old + value;
  } else {
    using U = std::make_unsigned_t<T>;
    if constexpr (A == Atomic::kAdd) return static_cast<T>(static_cast<U>(old) + static_cast<U>(value));
    if constexpr (A == Atomic::kMin) return std::min(old, value);
    if constexpr (A == Atomic::kMax) return std::max(old, value);
    if constexpr (A == Atomic::kAnd) return old & value;
    if constexpr (A == Atomic::kOr) return old | value;
    if constexpr (A == Atomic::kXor) return old ^ value;
    if constexpr (A == Atomic::kIncrement) return old >= value ? T{0} : old + 1;
    if constexpr (A == Atomic::kDecrement) return old == 0 || old > value ? value : old - 1;
  }
  return old;
}

// b: operand (for cas the comparand), c: the new value of cas. d may be missing (red).
template <Atomic A, class T>
void atomic(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    std::byte* at = access_memory(w, i.space, effective_address(w, i, l), l, sizeof(T), true, true);
    const T first = w.row<T>(i.b)[l];
    T old;
    std::memcpy(&old, at, sizeof old);
    const T value =
        A == Atomic::kCompareSwap ? updated<A, T>(old, w.row<T>(i.c)[l], first) : updated<A, T>(old, first, T{});
    std::memcpy(at, &value, sizeof value);
    if (i.d != kNoSlot) w.row<T>(i.d)[l] = old;
    observe(w, i, reinterpret_cast<uint64_t>(at));
    publish(w, i, reinterpret_cast<uint64_t>(at));
  });
  w.engine.progress();
}

template <Atomic A>
Handler pick(Type type) {
  constexpr bool kCounter = A == Atomic::kIncrement || A == Atomic::kDecrement;
  constexpr bool kBitwise = A == Atomic::kAnd || A == Atomic::kOr || A == Atomic::kXor;
  constexpr bool kBits = kBitwise || A == Atomic::kExchange || A == Atomic::kCompareSwap;
  if constexpr (kBits) {
    return type == Type::kB32 ? atomic<A, uint32_t> : type == Type::kB64 ? Handler{atomic<A, uint64_t>} : nullptr;
  } else if constexpr (kCounter) {
    return type == Type::kU32 ? atomic<A, uint32_t> : nullptr;
  } else {
    switch (type) {
      case Type::kU32:
        return atomic<A, uint32_t>;
      case Type::kS32:
        return atomic<A, int32_t>;
      case Type::kU64:
        return atomic<A, uint64_t>;
      case Type::kS64:
        return atomic<A, int64_t>;
      case Type::kF32:
        return A == Atomic::kAdd ? approximate<atomic<Atomic::kAdd, float>> : nullptr;
      case Type::kF64:
        return A == Atomic::kAdd ? approximate<atomic<Atomic::kAdd, double>> : nullptr;
      default:
        return nullptr;
    }
  }
}

Handler atomic_handler(Atomic which, Type type) {
  using enum Atomic;
  switch (which) {
    case kAdd:
      return pick<kAdd>(type);
    case kMin:
      return pick<kMin>(type);
    case kMax:
      return pick<kMax>(type);
    case kAnd:
      return pick<kAnd>(type);
    case kOr:
      return pick<kOr>(type);
    case kXor:
      return pick<kXor>(type);
    case kExchange:
      return pick<kExchange>(type);
    case kCompareSwap:
      return pick<kCompareSwap>(type);
    case kIncrement:
      return pick<kIncrement>(type);
    case kDecrement:
      return pick<kDecrement>(type);
  }
  return nullptr;
}

void decode_atomic(Decoder& d, bool returns) {
  const auto order = take_memory_order(d);
  d.out().order = order.value_or(MemoryOrder::kRelaxed);
  const auto space = d.take_any({"global", "shared", "shared::cta", "shared::cluster"});
  const Atomic which =
      static_cast<Atomic>(d.require_any({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"}));
  const Type type = d.take_type();
  const size_t first = returns ? 1 : 0;
  const bool swap = which == Atomic::kCompareSwap;
  d.expect_count(first + (swap ? 3 : 2), first + (swap ? 3 : 2));
  if (returns) d.out().d = d.destination(0, type);
  d.address(first, !space ? Space::kGeneric : *space == 0 ? Space::kGlobal : Space::kShared);
  d.out().b = d.source(first + 1, type);
  if (swap) d.out().c = d.source(first + 2, type);
  d.out().handler = atomic_handler(which, type);
}

}  // namespace

void decode_atom(Decoder& d) { decode_atomic(d, true); }

void decode_red(Decoder& d) {
  if (d.take("async")) d.fail("red.async is not supported");
  decode_atomic(d, false);
}

}  // namespace isobit::ptx
