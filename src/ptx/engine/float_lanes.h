// Lane loops of floating-point operations: flushing, saturation, the canonical NaN.
#pragma once
#include <bit>
#include <cmath>

#include "numerics/bits.h"
#include "ptx/engine/lanes.h"

namespace isobit::ptx {

struct Flush {
  bool subnormals = false;  // .ftz, of arguments and result
  bool saturate = false;    // .sat, to [0, 1], NaN to 0
};

Flush take_flush(Decoder& d, Type type);

inline float flush_subnormal(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return (bits & 0x7F800000) == 0 ? std::bit_cast<float>(bits & 0x80000000) : x;
}
inline double canonical(double x) { return x != x ? std::bit_cast<double>(uint64_t{0xFFF8000000000000}) : x; }
inline float canonical(float x) { return numerics::canonical_nan(x); }

template <class Op, bool Subnormals, bool Saturate>
struct FloatOp {
  template <class... Ts>
  float operator()(float a, Ts... rest) const {
    float r;
    if constexpr (Subnormals)
      r = flush_subnormal(Op{}(flush_subnormal(a), flush_subnormal(rest)...));
    else
      r = Op{}(a, rest...);
    if constexpr (Saturate) return r > 0.0f ? (r < 1.0f ? r : 1.0f) : 0.0f;
    return canonical(r);
  }
  template <class... Ts>
  double operator()(double a, Ts... rest) const {
    return canonical(Op{}(a, rest...));
  }
};

// Applies `wrap` to the handler of Op over Count fp32 or fp64 arguments.
template <class Op, size_t Count, class Wrap>
Handler pick_float(Type type, Flush flush, Wrap wrap) {
  const auto pick = [&]<class F, class T>(F, T) {
    if constexpr (Count == 1)
      return wrap.template operator()<map_lanes<F, T, T>>();
    else if constexpr (Count == 2)
      return wrap.template operator()<map_lanes<F, T, T, T>>();
    else
      return wrap.template operator()<map_lanes<F, T, T, T, T>>();
  };
  if (type == Type::kF64) return pick(FloatOp<Op, false, false>{}, double{});
  if (flush.subnormals)
    return flush.saturate ? pick(FloatOp<Op, true, true>{}, 0.0f) : pick(FloatOp<Op, true, false>{}, 0.0f);
  return flush.saturate ? pick(FloatOp<Op, false, true>{}, 0.0f) : pick(FloatOp<Op, false, false>{}, 0.0f);
}

template <class Op, size_t Count>
Handler float_handler(Type type, Flush flush) {
  return pick_float<Op, Count>(type, flush, []<Handler H>() -> Handler { return H; });
}

// The same, refused unless approximations are allowed.
template <class Op, size_t Count>
Handler loose_float_handler(Type type, Flush flush) {
  return pick_float<Op, Count>(type, flush, []<Handler H>() -> Handler { return approximate<H>; });
}

}  // namespace isobit::ptx
