// Integer arithmetic. Opcodes that also exist for floats hand those over to float.cpp.
#include <limits>

#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"

namespace isobit::ptx {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Twice the width, to hold a full product.
template <class T>
using Double = std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                                  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct MulLow {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Double<T>>(a) * static_cast<Double<T>>(b));
  }
};
struct MulHigh {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>((static_cast<Double<T>>(a) * static_cast<Double<T>>(b)) >> (8 * sizeof(T)));
  }
};
struct MadLow {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(MulLow{}(a, b), c);
  }
};
struct MadHigh {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(MulHigh{}(a, b), c);
  }
};
template <class Wide>
struct MulWide {
  template <class T>
  Wide operator()(T a, T b) const {
    return static_cast<Wide>(a) * static_cast<Wide>(b);
  }
  template <class T>
  Wide operator()(T a, T b, Wide c) const {
    return Add{}((*this)(a, b), c);
  }
};
// Division by zero has no defined value; quotient and remainder are all ones on an H200 (32 bits: measured 2026-11-29;
// 64 bits: what ptxas 13.0 writes out; 16 bits: taken to be the same).
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return Sub{}(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    return a < 0 ? Sub{}(T{0}, a) : a;
  }
};
struct Neg {
  template <class T>
  T operator()(T a) const {
    return Sub{}(T{0}, a);
  }
};
struct Sad {
  template <class T>
  T operator()(T a, T b, T c) const {
    return Add{}(c, a < b ? Sub{}(b, a) : Sub{}(a, b));
  }
};
struct AddSaturating {
  int32_t operator()(int32_t a, int32_t b) const { return clamp(int64_t{a} + b); }
  static int32_t clamp(int64_t v) {
    return static_cast<int32_t>(std::min<int64_t>(std::max<int64_t>(v, INT32_MIN), INT32_MAX));
  }
};
struct SubSaturating {
  int32_t operator()(int32_t a, int32_t b) const { return AddSaturating::clamp(int64_t{a} - b); }
};

// a + b + carry in, or a - b - borrow in; mode 1 takes the carry in, mode 2 writes it, and they add up.
constexpr uint32_t kCarryIn = 1, kCarryOut = 2;

template <class T, bool Subtract>
void with_carry(Warp& w, const Instruction& i, LaneMask active) {
  const T* a = w.row<T>(i.a);
  const T* b = w.row<T>(i.b);
  T* d = w.row<T>(i.d);
  for_each_lane(active, [&](int l) {
    const unsigned __int128 in = i.mode & kCarryIn ? w.carry >> l & 1 : 0;
    const unsigned __int128 sum =
        Subtract ? static_cast<unsigned __int128>(a[l]) - b[l] - in : static_cast<unsigned __int128>(a[l]) + b[l] + in;
    d[l] = static_cast<T>(sum);
    const LaneMask out = static_cast<LaneMask>(sum >> (8 * sizeof(T)) & 1);
    if (i.mode & kCarryOut) w.carry = (w.carry & ~(1u << l)) | out << l;
  });
}

void decode_carry(Decoder& d, Type type, uint32_t mode, bool subtract) {
  decode_uniform(d, type, 2);
  d.out().mode = mode;
  const bool wide = bits_of(type) == 64;
  if (bits_of(type) < 32) d.fail("the carry forms have 32 or 64 bits");
  d.out().handler = subtract ? (wide ? with_carry<uint64_t, true> : with_carry<uint32_t, true>)
                             : (wide ? with_carry<uint64_t, false> : with_carry<uint32_t, false>);
}

Type take_integer(Decoder& d) {
  const Type type = d.take_type();
  if (class_of(type) != TypeClass::kInteger) d.fail("expected an integer type, got ." + std::string(name_of(type)));
  return type;
}

Type widened(Decoder& d, Type type) {
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS32:
      return Type::kS64;
    default:
      d.fail("no .wide form of this type");
  }
}

void decode_wide(Decoder& d, Type type, bool add) {
  const Type wide = widened(d, type);
  d.expect_count(add ? 4 : 3, add ? 4 : 3);
  d.out().d = d.destination(0, wide);
  d.out().a = d.source(1, type);
  d.out().b = d.source(2, type);
  if (add) d.out().c = d.source(3, wide);
  const auto pick = [&]<class N, class W>(N, W) {
    d.out().handler = add ? Handler{map_lanes<MulWide<W>, W, N, N, W>} : Handler{map_lanes<MulWide<W>, W, N, N>};
  };
  switch (type) {
    case Type::kU16:
      return pick(uint16_t{}, uint32_t{});
    case Type::kS16:
      return pick(int16_t{}, int32_t{});
    case Type::kU32:
      return pick(uint32_t{}, uint64_t{});
    default:
      return pick(int32_t{}, int64_t{});
  }
}

template <class Op, class Saturating>
void decode_sum(Decoder& d, Type type, bool subtract) {
  if (d.take("cc")) return decode_carry(d, type, kCarryOut, subtract);
  decode_uniform(d, type, 2);
  if (!d.take("sat")) {
    d.out().handler = integer_handler<Op, 2>(type);
  } else if (type == Type::kS32) {
    d.out().handler = map_lanes<Saturating, int32_t, int32_t, int32_t>;
  }
}

template <class Op>
void decode_plain(Decoder& d, Type type) {
  decode_uniform(d, type, 2);
  d.out().handler = integer_handler<Op, 2>(type);
}

}  // namespace

void decode_add(Decoder& d) {
  const Type type = d.take_type();
  if (is_float(type)) return decode_float_add(d, type);
  decode_sum<Add, AddSaturating>(d, type, false);
}

void decode_sub(Decoder& d) {
  const Type type = d.take_type();
  if (is_float(type)) return decode_float_sub(d, type);
  decode_sum<Sub, SubSaturating>(d, type, true);
}

void decode_addc(Decoder& d) {
  const uint32_t mode = kCarryIn | (d.take("cc") ? kCarryOut : 0);
  decode_carry(d, take_integer(d), mode, false);
}

void decode_subc(Decoder& d) {
  const uint32_t mode = kCarryIn | (d.take("cc") ? kCarryOut : 0);
  decode_carry(d, take_integer(d), mode, true);
}

void decode_mul(Decoder& d) {
  const Type type = d.take_type();
  if (is_float(type)) return decode_float_mul(d, type);
  const size_t form = d.require_any({"lo", "hi", "wide"});
  if (form == 2) return decode_wide(d, type, false);
  decode_uniform(d, type, 2);
  d.out().handler = form == 0 ? integer_handler<MulLow, 2>(type) : integer_handler<MulHigh, 2>(type);
}

void decode_mad(Decoder& d) {
  const Type type = d.take_type();
  if (is_float(type)) d.fail("mad of a float type is not supported; fma is");
  const size_t form = d.require_any({"lo", "hi", "wide"});
  if (form == 2) return decode_wide(d, type, true);
  decode_uniform(d, type, 3);
  d.out().handler = form == 0 ? integer_handler<MadLow, 3>(type) : integer_handler<MadHigh, 3>(type);
}

void decode_div(Decoder& d) {
  const Type type = d.take_type();
  if (is_float(type)) return decode_float_div(d, type);
  decode_plain<Div>(d, type);
}

void decode_rem(Decoder& d) { decode_plain<Rem>(d, take_integer(d)); }

void decode_min(Decoder& d) {
  const Type type = d.take_type();
  if (is_float(type)) return decode_float_extremum(d, type, false);
  decode_plain<Min>(d, type);
}

void decode_max(Decoder& d) {
  const Type type = d.take_type();
  if (is_float(type)) return decode_float_extremum(d, type, true);
  decode_plain<Max>(d, type);
}

void decode_abs(Decoder& d) {
  const Type type = d.take_type();
  if (is_float(type)) return decode_float_sign(d, type, false);
  decode_uniform(d, type, 1);
  d.out().handler = is_signed(type) ? integer_handler<Abs, 1>(type) : nullptr;
}

void decode_neg(Decoder& d) {
  const Type type = d.take_type();
  if (is_float(type)) return decode_float_sign(d, type, true);
  decode_uniform(d, type, 1);
  d.out().handler = is_signed(type) ? integer_handler<Neg, 1>(type) : nullptr;
}

void decode_sad(Decoder& d) {
  const Type type = take_integer(d);
  decode_uniform(d, type, 3);
  d.out().handler = integer_handler<Sad, 3>(type);
}

}  // namespace isobit::ptx
