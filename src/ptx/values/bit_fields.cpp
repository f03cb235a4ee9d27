// Bit fields and bit counts.
#include <algorithm>
#include <bit>

#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"

namespace isobit::ptx {
namespace {

struct FieldExtract {
  template <class T>
  T operator()(T a, uint32_t position, uint32_t length) const {
    using U = std::make_unsigned_t<T>;
    constexpr uint32_t kWidth = 8 * sizeof(T);
    position &= 0xFF;
    length &= 0xFF;
    if (length == 0) return 0;
    const U bits = position < kWidth ? static_cast<U>(static_cast<U>(a) >> position) : U{0};
    if (std::is_signed_v<T>) {
      const uint32_t top = std::min(position + length - 1, kWidth - 1);
      const bool sign = static_cast<U>(a) >> top & 1;
      const U kept = length < kWidth ? (U{1} << length) - 1 : ~U{0};
      const uint32_t real = position < kWidth ? kWidth - position : 0;
      const U present = real < kWidth ? (U{1} << real) - 1 : ~U{0};
      return static_cast<T>(sign ? (bits | ~(kept & present)) : (bits & kept));
    }
    return static_cast<T>(length < kWidth ? bits & ((U{1} << length) - 1) : bits);
  }
};

template <class T>
T insert_field(T value, T into, uint32_t position, uint32_t length) {
  constexpr uint32_t kWidth = 8 * sizeof(T);
  position &= 0xFF;
  length &= 0xFF;
  if (position >= kWidth || length == 0) return into;
  const T mask = static_cast<T>((length < kWidth ? (T{1} << length) - 1 : ~T{0}) << position);
  return (into & ~mask) | (static_cast<T>(value << position) & mask);
}

template <class T>
void field_insert(Warp& w, const Instruction& i, LaneMask active) {
  const T *a = w.row<T>(i.a), *b = w.row<T>(i.b);
  const uint32_t *position = w.word(i.c), *length = w.word(i.e);
  T* d = w.row<T>(i.d);
  for_each_lane(active, [&](int l) { d[l] = insert_field(a[l], b[l], position[l], length[l]); });
}

struct CountOnes {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::popcount(a));
  }
};
struct CountLeadingZeros {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::countl_zero(a));
  }
};
struct Reverse {
  template <class T>
  T operator()(T a) const {
    T r = 0;
    for (uint32_t k = 0; k < 8 * sizeof(T); ++k) r |= (a >> k & 1) << (8 * sizeof(T) - 1 - k);
    return r;
  }
};
template <bool Shift>
struct FindTop {
  template <class T>
  uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    const U u = static_cast<U>(a < 0 ? ~a : a);
    if (u == 0) return ~0u;
    const uint32_t zeros = static_cast<uint32_t>(std::countl_zero(u));
    return Shift ? zeros : static_cast<uint32_t>(8 * sizeof(T) - 1) - zeros;
  }
};

// d (32 bits) = Op(a) for a of 32 or 64 bits.
template <class Op, class T32, class T64>
void decode_count(Decoder& d, Type type) {
  d.expect_count(2, 2);
  d.out().d = d.destination(0, Type::kU32);
  d.out().a = d.source(1, type);
  d.out().handler = bits_of(type) == 64   ? Handler{map_lanes<Op, uint32_t, T64>}
                    : bits_of(type) == 32 ? Handler{map_lanes<Op, uint32_t, T32>}
                                          : nullptr;
}

}  // namespace

void decode_bfe(Decoder& d) {
  const Type type = d.take_type();
  d.expect_count(4, 4);
  d.out().d = d.destination(0, type);
  d.out().a = d.source(1, type);
  d.out().b = d.source(2, Type::kU32);
  d.out().c = d.source(3, Type::kU32);
  switch (type) {
    case Type::kU32:
      d.out().handler = map_lanes<FieldExtract, uint32_t, uint32_t, uint32_t, uint32_t>;
      break;
    case Type::kS32:
      d.out().handler = map_lanes<FieldExtract, int32_t, int32_t, uint32_t, uint32_t>;
      break;
    case Type::kU64:
      d.out().handler = map_lanes<FieldExtract, uint64_t, uint64_t, uint32_t, uint32_t>;
      break;
    case Type::kS64:
      d.out().handler = map_lanes<FieldExtract, int64_t, int64_t, uint32_t, uint32_t>;
      break;
    default:
      break;
  }
}

void decode_bfi(Decoder& d) {
  const Type type = d.take_type();
  d.expect_count(5, 5);
  d.out().d = d.destination(0, type);
  d.out().a = d.source(1, type);
  d.out().b = d.source(2, type);
  d.out().c = d.source(3, Type::kU32);
  d.out().e = d.source(4, Type::kU32);
  d.out().handler = type == Type::kB32 ? field_insert<uint32_t> : type == Type::kB64 ? field_insert<uint64_t> : nullptr;
}

void decode_popc(Decoder& d) { decode_count<CountOnes, uint32_t, uint64_t>(d, d.take_type()); }
void decode_clz(Decoder& d) { decode_count<CountLeadingZeros, uint32_t, uint64_t>(d, d.take_type()); }

void decode_brev(Decoder& d) {
  const Type type = d.take_type();
  decode_uniform(d, type, 1);
  d.out().handler = type == Type::kB32   ? Handler{map_lanes<Reverse, uint32_t, uint32_t>}
                    : type == Type::kB64 ? Handler{map_lanes<Reverse, uint64_t, uint64_t>}
                                         : nullptr;
}

void decode_bfind(Decoder& d) {
  const bool shift = d.take("shiftamt");
  const Type type = d.take_type();
  if (is_signed(type)) {
    shift ? decode_count<FindTop<true>, int32_t, int64_t>(d, type)
          : decode_count<FindTop<false>, int32_t, int64_t>(d, type);
  } else {
    shift ? decode_count<FindTop<true>, uint32_t, uint64_t>(d, type)
          : decode_count<FindTop<false>, uint32_t, uint64_t>(d, type);
  }
}

}  // namespace isobit::ptx
