// Floating-point arithmetic in fp32 and fp64, round to nearest. A NaN result is the GPU's canonical one.
#include <cmath>
#include <limits>

#include "numerics/bits.h"
#include "ptx/decode/families.h"
#include "ptx/engine/float_lanes.h"

namespace isobit::ptx {
namespace {

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct Fma {
  template <class T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
struct Sqrt {
  template <class T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};
struct Reciprocal {
  template <class T>
  T operator()(T a) const {
    return T{1} / a;
  }
};

template <bool Maximum>
struct Extremum {
  template <class T>
  T operator()(T a, T b) const {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) == Maximum ? b : a;  // -0 counts as less than +0
    return (a < b) == Maximum ? b : a;
  }
};
template <bool Maximum>
struct ExtremumNan {
  template <class T>
  T operator()(T a, T b) const {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    return Extremum<Maximum>{}(a, b);
  }
};

// fp64 signs are bit operations and keep a NaN's payload.
struct Magnitude {
  uint32_t operator()(uint32_t a) const { return a & 0x7FFFFFFF; }
  uint64_t operator()(uint64_t a) const { return a & ~(uint64_t{1} << 63); }
};
struct Negate {
  uint32_t operator()(uint32_t a) const { return a ^ 0x80000000; }
  uint64_t operator()(uint64_t a) const {
    return a ^ uint64_t { 1 } << 63;
  }
};
// fp32 signs are additions on the device: any NaN becomes the canonical one (H200, 2026-11-29).
template <class Op, bool Flush>
struct SignOfFloat {
  float operator()(float a) const {
    if constexpr (Flush) a = flush_subnormal(a);
    return canonical(std::bit_cast<float>(Op{}(std::bit_cast<uint32_t>(a))));
  }
};
struct CopySign {
  uint32_t operator()(uint32_t a, uint32_t b) const { return (a & 0x80000000) | (b & 0x7FFFFFFF); }
  uint64_t operator()(uint64_t a, uint64_t b) const { return (a & uint64_t{1} << 63) | (b & ~(uint64_t{1} << 63)); }
};

enum class Property : uint32_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };

template <class T>
bool has_property(T x, Property p) {
  switch (p) {
    case Property::kFinite:
      return std::isfinite(x);
    case Property::kInfinite:
      return std::isinf(x);
    case Property::kNumber:
      return !std::isnan(x);
    case Property::kNotANumber:
      return std::isnan(x);
    case Property::kNormal:
      return std::isnormal(x) || x == T{0};  // zeros count as normal
    case Property::kSubnormal:
      return std::fpclassify(x) == FP_SUBNORMAL;
  }
  return false;
}

template <class T>
void test_property(Warp& w, const Instruction& i, LaneMask active) {
  const T* a = w.row<T>(i.a);
  LaneMask result = 0;
  for_each_lane(active, [&](int l) { result |= has_property(a[l], static_cast<Property>(i.mode)) ? 1u << l : 0u; });
  w.set_predicate(i.d, result, active);
}

void need_wide_type(Decoder& d, Type type) {
  if (type != Type::kF32 && type != Type::kF64) d.fail("only .f32 and .f64 are supported");
}

template <class Op>
Handler sign_handler(Type type, bool flush) {
  if (type == Type::kF64) return map_lanes<Op, uint64_t, uint64_t>;
  if (type != Type::kF32) return nullptr;
  return flush ? map_lanes<SignOfFloat<Op, true>, float, float> : map_lanes<SignOfFloat<Op, false>, float, float>;
}

// add, sub, mul: with .rn, or without and then open to contraction by the compiler behind PTX.
template <class Op>
void decode_rounded(Decoder& d, Type type) {
  if (is_half(type)) return decode_half(d, type);
  need_wide_type(d, type);
  const bool rounded = d.take("rn");
  const Flush flush = take_flush(d, type);
  decode_uniform(d, type, 2);
  d.out().handler = rounded ? float_handler<Op, 2>(type, flush) : loose_float_handler<Op, 2>(type, flush);
}

}  // namespace

Flush take_flush(Decoder& d, Type type) {
  Flush flush;
  flush.subnormals = d.take("ftz");
  flush.saturate = d.take("sat");
  if (type != Type::kF32 && (flush.subnormals || flush.saturate)) d.fail(".ftz and .sat belong to .f32");
  return flush;
}

void decode_float_add(Decoder& d, Type type) { decode_rounded<Add>(d, type); }
void decode_float_sub(Decoder& d, Type type) { decode_rounded<Sub>(d, type); }
void decode_float_mul(Decoder& d, Type type) { decode_rounded<Mul>(d, type); }

void decode_fma(Decoder& d) {
  const Type type = d.take_type();
  if (is_half(type)) return decode_half(d, type);
  d.require("rn");
  need_wide_type(d, type);
  const Flush flush = take_flush(d, type);
  decode_uniform(d, type, 3);
  d.out().handler = float_handler<Fma, 3>(type, flush);
}

void decode_float_div(Decoder& d, Type type) {
  need_wide_type(d, type);
  const bool exact = d.require_any({"rn", "full", "approx"}) == 0;
  const Flush flush = take_flush(d, type);
  decode_uniform(d, type, 2);
  d.out().handler = exact ? float_handler<Div, 2>(type, flush) : loose_float_handler<Div, 2>(type, flush);
}

void decode_sqrt(Decoder& d) {
  const Type type = d.take_type();
  need_wide_type(d, type);
  const bool exact = d.require_any({"rn", "approx"}) == 0;
  const Flush flush = take_flush(d, type);
  decode_uniform(d, type, 1);
  d.out().handler = exact ? float_handler<Sqrt, 1>(type, flush) : loose_float_handler<Sqrt, 1>(type, flush);
}

void decode_rcp(Decoder& d) {
  const Type type = d.take_type();
  need_wide_type(d, type);
  const bool exact = d.require_any({"rn", "approx"}) == 0;
  const Flush flush = take_flush(d, type);
  decode_uniform(d, type, 1);
  d.out().handler = exact ? float_handler<Reciprocal, 1>(type, flush) : loose_float_handler<Reciprocal, 1>(type, flush);
}

void decode_float_extremum(Decoder& d, Type type, bool maximum) {
  need_wide_type(d, type);
  const bool nan = d.take("NaN");
  const Flush flush = take_flush(d, type);
  decode_uniform(d, type, 2);
  if (maximum) {
    d.out().handler =
        nan ? float_handler<ExtremumNan<true>, 2>(type, flush) : float_handler<Extremum<true>, 2>(type, flush);
  } else {
    d.out().handler =
        nan ? float_handler<ExtremumNan<false>, 2>(type, flush) : float_handler<Extremum<false>, 2>(type, flush);
  }
}

void decode_float_sign(Decoder& d, Type type, bool negate) {
  if (is_half(type)) return decode_half_sign(d, type, negate);
  decode_uniform(d, type, 1);
  const bool flush = type == Type::kF32 && d.take("ftz");
  d.out().handler = negate ? sign_handler<Negate>(type, flush) : sign_handler<Magnitude>(type, flush);
}

void decode_copysign(Decoder& d) {
  const Type type = d.take_type();
  need_wide_type(d, type);
  decode_uniform(d, type, 2);
  d.out().handler = type == Type::kF32 ? Handler{map_lanes<CopySign, uint32_t, uint32_t, uint32_t>}
                                       : Handler{map_lanes<CopySign, uint64_t, uint64_t, uint64_t>};
}

void decode_testp(Decoder& d) {
  d.out().mode =
      static_cast<uint32_t>(d.require_any({"finite", "infinite", "number", "notanumber", "normal", "subnormal"}));
  const Type type = d.take_type();
  need_wide_type(d, type);
  d.expect_count(2, 2);
  d.out().d = d.predicate_destination(d.operand(0));
  d.out().a = d.source(1, type);
  d.out().handler = type == Type::kF32 ? test_property<float> : test_property<double>;
}

}  // namespace isobit::ptx
