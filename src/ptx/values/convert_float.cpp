// cvt between integers, fp32 and fp64, and between fp32 and one bf16 or fp16.
#include <cfenv>
#include <cmath>
#include <limits>

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "ptx/decode/families.h"
#include "ptx/engine/float_lanes.h"

namespace isobit::ptx {
namespace {

enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp };

template <Rounding R, class T>
T round_to_integral(T x) {
  if constexpr (R == Rounding::kNearest) return std::nearbyint(x);
  if constexpr (R == Rounding::kZero) return std::trunc(x);
  if constexpr (R == Rounding::kDown) return std::floor(x);
  return std::ceil(x);
}

// NaN becomes 0, or 1 << 63 where either side has 64 bits; everything else is clamped.
template <class To, Rounding R, bool Flush>
struct FloatToInteger {
  template <class From>
  To operator()(From a) const {
    using Limits = std::numeric_limits<To>;
    if constexpr (Flush) a = flush_subnormal(a);
    if (std::isnan(a))
      return sizeof(To) == 8 || sizeof(From) == 8 ? static_cast<To>(uint64_t{1} << (8 * sizeof(To) - 1)) : To{0};
    const From r = round_to_integral<R>(a);
    if (r <= static_cast<From>(Limits::min())) return Limits::min();
    if (r >= static_cast<From>(Limits::max())) return Limits::max();
    return static_cast<To>(r);
  }
};
template <class To>
struct IntegerToFloat {
  template <class From>
  To operator()(From a) const {
    return static_cast<To>(a);
  }
};
template <Rounding R, bool Flush>
struct RoundInPlace {
  template <class T>
  T operator()(T a) const {
    if constexpr (Flush) a = flush_subnormal(a);
    return canonical(round_to_integral<R>(a));
  }
};
template <bool Flush>
struct Widen {
  double operator()(float a) const { return canonical(static_cast<double>(Flush ? flush_subnormal(a) : a)); }
};
template <bool Flush>
struct Narrow {
  float operator()(double a) const {
    const float r = canonical(static_cast<float>(a));
    return Flush ? flush_subnormal(r) : r;
  }
};
// A NaN from bf16 keeps its bits, one from fp16 becomes canonical (H200, 2026-11-29); the formats say so themselves.
template <class Format>
struct FromHalf {
  float operator()(uint16_t a) const { return Format::to_float(a); }
};
template <class Format, bool Flush>
struct ToHalf {
  uint16_t operator()(float a) const { return Format::from_float(Flush ? flush_subnormal(a) : a); }
};
template <class Format, bool Flush>
struct ToHalfRelu {
  uint16_t operator()(float a) const {
    const uint16_t r = ToHalf<Format, Flush>{}(a);
    return std::isnan(a) || r < 0x8000 ? r : 0;
  }
};
// Round to nearest with ties away from zero, to eleven significant bits. A NaN is cut off (H200, 2026-11-29; none was
// measured whose payload lies in the bits that go).
struct ToTf32 {
  float operator()(float a) const {
    const uint32_t half_unit = std::isnan(a) ? 0 : 0x1000;
    return std::bit_cast<float>((std::bit_cast<uint32_t>(a) + half_unit) & ~0x1FFFu);
  }
};

template <class F>
Handler with_rounding(size_t choice, F&& f) {
  switch (choice) {
    case 0:
      return f.template operator()<Rounding::kNearest>();
    case 1:
      return f.template operator()<Rounding::kZero>();
    case 2:
      return f.template operator()<Rounding::kDown>();
    default:
      return f.template operator()<Rounding::kUp>();
  }
}

template <class F>
Handler with_wide_integer(Type type, F&& f) {
  switch (type) {
    case Type::kU8:
      return f(uint8_t{});
    case Type::kS8:
      return f(int8_t{});
    case Type::kU16:
      return f(uint16_t{});
    case Type::kS16:
      return f(int16_t{});
    case Type::kU32:
      return f(uint32_t{});
    case Type::kS32:
      return f(int32_t{});
    case Type::kU64:
      return f(uint64_t{});
    case Type::kS64:
      return f(int64_t{});
    default:
      return nullptr;
  }
}

template <class From>
Handler float_to_integer(Type to, size_t rounding, bool flush) {
  return with_wide_integer(to, [&]<class To>(To) {
    return with_rounding(rounding, [&]<Rounding R>() -> Handler {
      if constexpr (std::is_same_v<From, float>) {
        if (flush) return map_lanes<FloatToInteger<To, R, true>, To, From>;
      }
      return map_lanes<FloatToInteger<To, R, false>, To, From>;
    });
  });
}

template <class T>
Handler integral_rounding(size_t rounding, bool flush) {
  return with_rounding(rounding, [&]<Rounding R>() -> Handler {
    if constexpr (std::is_same_v<T, float>) {
      if (flush) return map_lanes<RoundInPlace<R, true>, T, T>;
    }
    return map_lanes<RoundInPlace<R, false>, T, T>;
  });
}

template <class Format>
Handler half_conversion(bool to_half, bool flush, bool relu) {
  if (!to_half) return relu ? nullptr : Handler{map_lanes<FromHalf<Format>, float, uint16_t>};
  if (relu)
    return flush ? map_lanes<ToHalfRelu<Format, true>, uint16_t, float>
                 : map_lanes<ToHalfRelu<Format, false>, uint16_t, float>;
  return flush ? map_lanes<ToHalf<Format, true>, uint16_t, float> : map_lanes<ToHalf<Format, false>, uint16_t, float>;
}

bool is_pair(Type to, Type from, Type a, Type b) { return (to == a && from == b) || (to == b && from == a); }

Handler float_to_float(Decoder& d, Type to, Type from, bool flush) {
  const auto integral = d.take_any({"rni", "rzi", "rmi", "rpi"});
  if (to == from && integral) {
    return to == Type::kF32   ? integral_rounding<float>(*integral, flush)
           : to == Type::kF64 ? integral_rounding<double>(*integral, false)
                              : nullptr;
  }
  if (to == Type::kTf32 && from == Type::kF32 && d.take("rna")) return map_lanes<ToTf32, float, float>;
  if (bits_of(to) < bits_of(from)) d.require("rn");
  if (is_pair(to, from, Type::kF32, Type::kF64)) {
    if (to == Type::kF64) return flush ? map_lanes<Widen<true>, double, float> : map_lanes<Widen<false>, double, float>;
    return flush ? map_lanes<Narrow<true>, float, double> : map_lanes<Narrow<false>, float, double>;
  }
  const bool relu = d.take("relu");
  if (is_pair(to, from, Type::kF32, Type::kF16)) return half_conversion<numerics::Fp16>(to == Type::kF16, flush, relu);
  if (is_pair(to, from, Type::kF32, Type::kBf16))
    return half_conversion<numerics::Bf16>(to == Type::kBf16, flush, relu);
  return nullptr;
}

}  // namespace

bool decode_float_cvt(Decoder& d, Type to, Type from) {
  const bool flush = d.take("ftz");
  if (is_float(to) && is_float(from)) {
    d.out().handler = float_to_float(d, to, from, flush);
  } else if (is_float(to)) {
    d.require("rn");
    d.out().handler = with_wide_integer(from, [&]<class From>(From) -> Handler {
      return to == Type::kF32   ? Handler{map_lanes<IntegerToFloat<float>, float, From>}
             : to == Type::kF64 ? Handler{map_lanes<IntegerToFloat<double>, double, From>}
                                : nullptr;
    });
  } else {
    const size_t rounding = d.require_any({"rni", "rzi", "rmi", "rpi"});
    d.take("sat");
    d.out().handler = from == Type::kF32   ? float_to_integer<float>(to, rounding, flush)
                      : from == Type::kF64 ? float_to_integer<double>(to, rounding, false)
                                           : nullptr;
  }
  d.expect_count(2, 2);
  d.out().d = d.destination(0, to);
  d.out().a = d.source(1, from);
  return d.out().handler != nullptr;
}

}  // namespace isobit::ptx
