// Bitwise operations, shifts and byte permutations.
#include <algorithm>

#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"

namespace isobit::ptx {
namespace {

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  T operator()(T a) const {
    return a == 0;
  }
};

// A shift by the width or more gives zeros, or copies of the sign.
struct ShiftLeft {
  template <class T>
  T operator()(T a, uint32_t n) const {
    return n < 8 * sizeof(T) ? static_cast<T>(a << n) : T{0};
  }
};
struct ShiftRight {
  template <class T>
  T operator()(T a, uint32_t n) const {
    constexpr uint32_t kWidth = 8 * sizeof(T);
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(a >> std::min(n, kWidth - 1));
    else
      return n < kWidth ? static_cast<T>(a >> n) : T{0};
  }
};

template <bool Left, bool Clamp>
struct Funnel {
  uint32_t operator()(uint32_t low, uint32_t high, uint32_t n) const {
    n = Clamp ? std::min(n, 32u) : n & 31;
    const uint64_t both = uint64_t{high} << 32 | low;
    return Left ? static_cast<uint32_t>(both << n >> 32) : static_cast<uint32_t>(both >> n);
  }
};

struct Permute {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t selector) const {
    const uint64_t bytes = uint64_t{b} << 32 | a;
    uint32_t d = 0;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t s = selector >> (4 * k) & 15;
      uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (s & 7))) & 0xFF;
      if (s & 8) byte = byte & 0x80 ? 0xFF : 0;
      d |= byte << (8 * k);
    }
    return d;
  }
};

void lookup3(Warp& w, const Instruction& i, LaneMask active) {
  const uint32_t *a = w.word(i.a), *b = w.word(i.b), *c = w.word(i.c);
  uint32_t* d = w.word(i.d);
  const uint32_t table = i.mode;
  for_each_lane(active, [&](int l) {
    uint32_t r = 0;
    for (uint32_t k = 0; k < 8; ++k) {
      if (table >> k & 1) r |= (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
    }
    d[l] = r;
  });
}

template <class Op>
void predicate_op(Warp& w, const Instruction& i, LaneMask active) {
  w.set_predicate(i.d, Op{}(w.predicate(i.a), w.predicate(i.b)), active);
}
void predicate_not(Warp& w, const Instruction& i, LaneMask active) { w.set_predicate(i.d, ~w.predicate(i.a), active); }

template <class Op>
void decode_bitwise(Decoder& d) {
  const Type type = d.take_type();
  d.expect_count(3, 3);
  if (type == Type::kPred) {
    d.out().d = d.predicate_destination(d.operand(0));
    d.out().a = d.predicate(1);
    d.out().b = d.predicate(2);
    d.out().handler = predicate_op<Op>;
    return;
  }
  if (class_of(type) != TypeClass::kBits) d.fail("expected a bit-size type");
  decode_uniform(d, type, 2);
  d.out().handler = integer_handler<Op, 2>(type);
}

template <class Op>
Handler shift_handler(Type type) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
      return map_lanes<Op, uint16_t, uint16_t, uint32_t>;
    case Type::kS16:
      return map_lanes<Op, int16_t, int16_t, uint32_t>;
    case Type::kB32:
    case Type::kU32:
      return map_lanes<Op, uint32_t, uint32_t, uint32_t>;
    case Type::kS32:
      return map_lanes<Op, int32_t, int32_t, uint32_t>;
    case Type::kB64:
    case Type::kU64:
      return map_lanes<Op, uint64_t, uint64_t, uint32_t>;
    case Type::kS64:
      return map_lanes<Op, int64_t, int64_t, uint32_t>;
    default:
      return nullptr;
  }
}

void decode_shift_operands(Decoder& d, Type type) {
  d.expect_count(3, 3);
  d.out().d = d.destination(0, type);
  d.out().a = d.source(1, type);
  d.out().b = d.source(2, Type::kU32);
}

}  // namespace

void decode_and(Decoder& d) { decode_bitwise<And>(d); }
void decode_or(Decoder& d) { decode_bitwise<Or>(d); }
void decode_xor(Decoder& d) { decode_bitwise<Xor>(d); }

void decode_not(Decoder& d) {
  const Type type = d.take_type();
  if (type == Type::kPred) {
    d.expect_count(2, 2);
    d.out().d = d.predicate_destination(d.operand(0));
    d.out().a = d.predicate(1);
    d.out().handler = predicate_not;
    return;
  }
  decode_uniform(d, type, 1);
  d.out().handler = class_of(type) == TypeClass::kBits ? integer_handler<Not, 1>(type) : nullptr;
}

void decode_cnot(Decoder& d) {
  const Type type = d.take_type();
  decode_uniform(d, type, 1);
  d.out().handler = integer_handler<Cnot, 1>(type);
}

void decode_shl(Decoder& d) {
  const Type type = d.take_type();
  decode_shift_operands(d, type);
  d.out().handler = class_of(type) == TypeClass::kBits ? shift_handler<ShiftLeft>(type) : nullptr;
}

void decode_shr(Decoder& d) {
  const Type type = d.take_type();
  decode_shift_operands(d, type);
  d.out().handler = shift_handler<ShiftRight>(type);
}

void decode_shf(Decoder& d) {
  const bool left = d.require_any({"l", "r"}) == 0, clamp = d.require_any({"wrap", "clamp"}) == 1;
  d.require("b32");
  decode_uniform(d, Type::kB32, 3);
  const auto pick = [&]<bool L, bool C>() {
    d.out().handler = map_lanes<Funnel<L, C>, uint32_t, uint32_t, uint32_t, uint32_t>;
  };
  if (left)
    clamp ? pick.operator()<true, true>() : pick.operator()<true, false>();
  else
    clamp ? pick.operator()<false, true>() : pick.operator()<false, false>();
}

void decode_lop3(Decoder& d) {
  d.require("b32");
  d.expect_count(5, 5);
  d.out().d = d.destination(0, Type::kB32);
  d.out().a = d.source(1, Type::kB32);
  d.out().b = d.source(2, Type::kB32);
  d.out().c = d.source(3, Type::kB32);
  d.out().mode = static_cast<uint32_t>(d.literal(4));
  d.out().handler = lookup3;
}

void decode_prmt(Decoder& d) {
  d.require("b32");
  decode_uniform(d, Type::kB32, 3);
  d.out().handler = map_lanes<Permute, uint32_t, uint32_t, uint32_t, uint32_t>;
}

}  // namespace isobit::ptx
