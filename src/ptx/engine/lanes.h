// Loops over the lanes of a warp for instructions that map registers to a register.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#include "ptx/decode/decoder.h"
#include "ptx/engine/engine.h"
#include "ptx/engine/warp.h"
#include "ptx/syntax/diagnostics.h"

namespace isobit::ptx {

// Eight- and sixteen-bit registers live in the low bits of a 32-bit lane.
template <class T>
using LaneStorage = std::conditional_t<(sizeof(T) < 4), uint32_t, T>;

template <class T>
T read_lane(const LaneStorage<T>* row, int lane) {
  return static_cast<T>(row[lane]);
}

template <class T>
void write_lane(LaneStorage<T>* row, int lane, T value) {
  if constexpr (sizeof(T) < 4)
    row[lane] = static_cast<std::make_unsigned_t<T>>(value);
  else
    row[lane] = value;
}

// d = Op(a, b, ...) with result type R and argument types As, in every active lane.
template <class Op, class R, class... As>
void map_lanes(Warp& w, const Instruction& i, LaneMask active) {
  const Slot slots[3] = {i.a, i.b, i.c};
  LaneStorage<R>* d = w.row<LaneStorage<R>>(i.d);
  const auto apply = [&]<size_t... N>(std::index_sequence<N...>) {
    const std::tuple<const LaneStorage<As>*...> rows{w.row<LaneStorage<As>>(slots[N])...};
    if (active == kAllLanes) {
      for (int l = 0; l < kLanes; ++l) write_lane<R>(d, l, Op{}(read_lane<As>(std::get<N>(rows), l)...));
    } else {
      for_each_lane(active, [&](int l) { write_lane<R>(d, l, Op{}(read_lane<As>(std::get<N>(rows), l)...)); });
    }
  };
  apply(std::index_sequence_for<As...>{});
}

// A handler whose bits the GPU's compiler or hardware does not fix: it runs only where approximations are allowed.
template <Handler Inner>
void approximate(Warp& w, const Instruction& i, LaneMask active) {
  if (!w.engine.options().allow_approximate) {
    throw ExecutionFault{FindingKind::kUnsupported,
                         "its bits are not fixed: an approximate function, or an addition or multiplication "
                         "without .rn that ptxas may contract"};
  }
  Inner(w, i, active);
}

// Decoding of d, a, b, ... with one type for all.
inline void decode_uniform(Decoder& d, Type type, size_t sources) {
  d.expect_count(sources + 1, sources + 1);
  d.out().d = d.destination(0, type);
  Slot* const slots[3] = {&d.out().a, &d.out().b, &d.out().c};
  for (size_t i = 0; i < sources; ++i) *slots[i] = d.source(i + 1, type);
}

// map_lanes of an Op over `Count` arguments of the integer type, or null if the type is not one.
template <class Op, size_t Count>
Handler integer_handler(Type type) {
  const auto pick = []<class T>(T) -> Handler {
    if constexpr (Count == 1)
      return map_lanes<Op, T, T>;
    else if constexpr (Count == 2)
      return map_lanes<Op, T, T, T>;
    else
      return map_lanes<Op, T, T, T, T>;
  };
  switch (type) {
    case Type::kU16:
    case Type::kB16:
      return pick(uint16_t{});
    case Type::kS16:
      return pick(int16_t{});
    case Type::kU32:
    case Type::kB32:
      return pick(uint32_t{});
    case Type::kS32:
      return pick(int32_t{});
    case Type::kU64:
    case Type::kB64:
      return pick(uint64_t{});
    case Type::kS64:
      return pick(int64_t{});
    default:
      return nullptr;
  }
}

}  // namespace isobit::ptx
