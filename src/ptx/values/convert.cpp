// cvt between integers, and the choice among the conversion families.
#include <limits>

#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"

namespace isobit::ptx {
namespace {

template <class To, bool Saturate>
struct ConvertInteger {
  template <class From>
  To operator()(From a) const {
    if constexpr (Saturate) {
      using Limits = std::numeric_limits<To>;
      if (std::cmp_less(a, Limits::min())) return Limits::min();
      if (std::cmp_greater(a, Limits::max())) return Limits::max();
    }
    return static_cast<To>(a);
  }
};

// Calls f with a value of the C++ type that stands for an integer type.
template <class F>
Handler with_integer(Type type, F&& f) {
  switch (type) {
    case Type::kU8:
    case Type::kB8:
      return f(uint8_t{});
    case Type::kS8:
      return f(int8_t{});
    case Type::kU16:
    case Type::kB16:
      return f(uint16_t{});
    case Type::kS16:
      return f(int16_t{});
    case Type::kU32:
    case Type::kB32:
      return f(uint32_t{});
    case Type::kS32:
      return f(int32_t{});
    case Type::kU64:
    case Type::kB64:
      return f(uint64_t{});
    case Type::kS64:
      return f(int64_t{});
    default:
      return nullptr;
  }
}

// The result is written extended to the destination register: `register_type` is the stored width with To's sign.
// Source is what the source register holds: From, or 64 bits of which From takes the low ones.
template <class To, class From, class Source>
Handler integer_conversion(bool saturate, int register_bits) {
  using Extended32 = std::conditional_t<std::is_signed_v<To>, int32_t, uint32_t>;
  using Extended64 = std::conditional_t<std::is_signed_v<To>, int64_t, uint64_t>;
  const auto pick = [&]<class Stored>(Stored) -> Handler {
    struct Plain {
      Stored operator()(Source a) const {
        return static_cast<Stored>(ConvertInteger<To, false>{}(static_cast<From>(a)));
      }
    };
    struct Saturated {
      Stored operator()(Source a) const {
        return static_cast<Stored>(ConvertInteger<To, true>{}(static_cast<From>(a)));
      }
    };
    return saturate ? Handler{map_lanes<Saturated, Stored, Source>} : Handler{map_lanes<Plain, Stored, Source>};
  };
  if (register_bits <= 8 * static_cast<int>(sizeof(To))) return pick(To{});
  return register_bits == 64 ? pick(Extended64{}) : pick(Extended32{});
}

}  // namespace

void decode_cvt(Decoder& d) {
  const Type from = d.take_type(), to = d.take_type();
  if (is_float(from) || is_float(to)) {
    if (!decode_packed_cvt(d, to, from) && !decode_float_cvt(d, to, from)) d.fail("this conversion is not supported");
    return;
  }
  const bool saturate = d.take("sat");
  d.expect_count(2, 2);
  bool wide = false;
  d.out().d = d.loose_register(d.operand(0), to, true, wide);
  const int register_bits = d.operand(0).kind == OperandKind::kRegister ? bits_of(d.operand(0).type) : bits_of(to);
  d.out().a = d.loose_register(d.operand(1), from, false, wide);
  const bool wide_source =
      d.operand(1).kind == OperandKind::kRegister && bits_of(d.operand(1).type) == 64 && bits_of(from) < 64;
  d.out().handler = with_integer(to, [&]<class To>(To) {
    return with_integer(from, [&]<class From>(From) {
      return wide_source ? integer_conversion<To, From, uint64_t>(saturate, register_bits)
                         : integer_conversion<To, From, From>(saturate, register_bits);
    });
  });
}

}  // namespace isobit::ptx
