// mov in all its forms, and address conversions.
#include "ptx/decode/families.h"
#include "ptx/engine/addresses.h"
#include "ptx/engine/lanes.h"
#include "ptx/values/collective.h"

namespace isobit::ptx {
namespace {

struct Copy {
  template <class T>
  T operator()(T a) const {
    return a;
  }
};

void copy128(Warp& w, const Instruction& i, LaneMask active) {
  map_lanes<Copy, uint64_t, uint64_t>(w, i, active);
  Instruction high = i;
  high.d += 2;
  high.a += 2;
  map_lanes<Copy, uint64_t, uint64_t>(w, high, active);
}

void copy_predicate(Warp& w, const Instruction& i, LaneMask active) { w.set_predicate(i.d, w.predicate(i.a), active); }

// A 64-bit view of a register's lane, whatever its width; 128-bit registers are two such rows.
uint64_t read_bits(Warp& w, Slot slot, int bits, int lane) {
  if (bits > 32) return w.wide(slot)[lane];
  return bits == 32 ? w.word(slot)[lane] : w.word(slot)[lane] & ((1u << bits) - 1);
}
void write_bits(Warp& w, Slot slot, int bits, int lane, uint64_t value) {
  if (bits > 32)
    w.wide(slot)[lane] = value;
  else
    w.word(slot)[lane] = static_cast<uint32_t>(bits == 32 ? value : value & ((1u << bits) - 1));
}

// mode: bits of one element. list: elements, low first. Elements of a 128-bit value that is two wide rows have 32 or 64
// bits.
void pack(Warp& w, const Instruction& i, LaneMask active) {
  const int bits = static_cast<int>(i.mode), total = bits * static_cast<int>(i.list.size());
  for_each_lane(active, [&](int l) {
    uint64_t halves[2] = {0, 0};
    for (size_t k = 0; k < i.list.size(); ++k) {
      const int at = bits * static_cast<int>(k);
      halves[at / 64] |= read_bits(w, i.list[k], bits, l) << (at % 64);
    }
    write_bits(w, i.d, std::min(total, 64), l, halves[0]);
    if (total > 64) w.wide(i.d + 2)[l] = halves[1];
  });
}

void unpack(Warp& w, const Instruction& i, LaneMask active) {
  const int bits = static_cast<int>(i.mode), total = bits * static_cast<int>(i.list.size());
  for_each_lane(active, [&](int l) {
    const uint64_t halves[2] = {read_bits(w, i.a, std::min(total, 64), l), total > 64 ? w.wide(i.a + 2)[l] : 0};
    for (size_t k = 0; k < i.list.size(); ++k) {
      const int at = bits * static_cast<int>(k);
      write_bits(w, i.list[k], bits, l, halves[at / 64] >> (at % 64));
    }
  });
}

Type element_type(Decoder& d, Type whole, size_t parts) {
  switch (bits_of(whole) / static_cast<int>(parts)) {
    case 8:
      return Type::kB8;
    case 16:
      return Type::kB16;
    case 32:
      return Type::kB32;
    case 64:
      return Type::kB64;
    default:
      d.fail("these elements do not fill the type");
  }
}

void read_clock32(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) { w.word(i.d)[l] = static_cast<uint32_t>(w.engine.time()); });
}
void read_clock64(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) { w.wide(i.d)[l] = w.engine.time(); });
}

bool decode_clock(Decoder& d, Type type) {
  const Operand& source = d.operand(1);
  if (source.kind != OperandKind::kSpecial) return false;
  const bool narrow = source.name == "%clock" || source.name == "%clock_hi" || source.name == "%globaltimer_lo";
  const bool wide = source.name == "%clock64" || source.name == "%globaltimer";
  if (!narrow && !wide) return false;
  if (bits_of(type) != (wide ? 64 : 32)) d.fail("this special register has another width");
  d.out().d = d.destination(0, type);
  d.out().handler = wide ? read_clock64 : read_clock32;
  return true;
}

void decode_pack(Decoder& d, Type type) {
  const bool packing = d.operand(1).kind == OperandKind::kVector;
  const Operand& vector = d.operand(packing ? 1 : 0);
  const Type element = element_type(d, type, vector.parts.size());
  d.out().mode = static_cast<uint32_t>(bits_of(element));
  for (const Operand& part : vector.parts) {
    d.out().list.push_back(packing ? d.source(part, element) : d.destination(part, element));
  }
  if (packing)
    d.out().d = d.destination(0, type);
  else
    d.out().a = d.source(1, type);
  d.out().handler = packing ? pack : unpack;
}

// cvta between the generic window of a state space and its own addresses.
template <uint64_t Window>
struct ToGeneric {
  uint64_t operator()(uint64_t a) const { return a | Window; }
};
void to_space(Warp& w, const Instruction& i, LaneMask active) {
  const uint64_t* a = w.wide(i.a);
  const uint64_t window = uint64_t{i.mode} << 60;
  for_each_lane(active, [&](int l) {
    if ((a[l] & kWindowMask) != window) {
      throw ExecutionFault{FindingKind::kAccessViolation,
                           "generic address " + hex(a[l]) + " is not in the named state space"};
    }
    w.wide(i.d)[l] = a[l] & ~kWindowMask;
  });
}

template <uint64_t Window>
void is_in_space(Warp& w, const Instruction& i, LaneMask active) {
  LaneMask result = 0;
  for_each_lane(active, [&](int l) { result |= (w.wide(i.a)[l] & kWindowMask) == Window ? 1u << l : 0u; });
  w.set_predicate(i.d, result, active);
}

struct MapRank32 {
  uint32_t operator()(uint32_t a, uint32_t rank) const { return shared_offset(a) | rank << 24; }
};
struct MapRank64 {
  uint64_t operator()(uint64_t a, uint32_t rank) const {
    return (a & kWindowMask) | MapRank32{}(static_cast<uint32_t>(a), rank);
  }
};
struct RankOf {
  template <class T>
  uint32_t operator()(T a) const {
    return shared_rank(static_cast<uint32_t>(a));
  }
};

}  // namespace

void decode_mov(Decoder& d) {
  const Type type = d.take_type();
  d.expect_count(2, 2);
  if (type == Type::kPred) {
    d.out().d = d.predicate_destination(d.operand(0));
    d.out().a = d.predicate(1);
    d.out().handler = copy_predicate;
    return;
  }
  if (d.operand(0).kind == OperandKind::kVector || d.operand(1).kind == OperandKind::kVector)
    return decode_pack(d, type);
  if (decode_clock(d, type)) return;
  decode_uniform(d, type, 1);
  if (bits_of(type) <= 32 && d.out().rows.size() == 2) d.out().role = Role::kRegisterCopy;
  d.out().handler = bits_of(type) == 128  ? Handler{copy128}
                    : bits_of(type) == 64 ? Handler{map_lanes<Copy, uint64_t, uint64_t>}
                                          : Handler{map_lanes<Copy, uint32_t, uint32_t>};
}

void decode_cvta(Decoder& d) {
  d.require("u64");
  const bool to = d.take("to");
  const size_t space = d.require_any({"global", "const", "param", "shared", "local", "shared::cta", "shared::cluster"});
  decode_uniform(d, Type::kU64, 1);
  const bool shared = space == 3 || space >= 5;
  if (to) {
    d.out().mode = static_cast<uint32_t>((shared ? kSharedWindow : space == 4 ? kLocalWindow : 0) >> 60);
    d.out().handler = to_space;
  } else {
    d.out().handler = shared       ? Handler{map_lanes<ToGeneric<kSharedWindow>, uint64_t, uint64_t>}
                      : space == 4 ? Handler{map_lanes<ToGeneric<kLocalWindow>, uint64_t, uint64_t>}
                                   : Handler{map_lanes<Copy, uint64_t, uint64_t>};
  }
}

void decode_mapa(Decoder& d) {
  const bool narrow = d.take("shared::cluster");
  const Type type = d.take_type();
  if (type != Type::kU32 && type != Type::kU64) d.fail("expected .u32 or .u64");
  if (!narrow && type == Type::kU32) d.fail("a generic address has 64 bits");
  d.expect_count(3, 3);
  d.out().d = d.destination(0, type);
  d.out().a = d.source(1, type);
  d.out().b = d.source(2, Type::kU32);
  d.out().handler = type == Type::kU64 ? Handler{map_lanes<MapRank64, uint64_t, uint64_t, uint32_t>}
                                       : Handler{map_lanes<MapRank32, uint32_t, uint32_t, uint32_t>};
}

void decode_getctarank(Decoder& d) {
  d.take("shared::cluster");
  const Type type = d.take_type();
  d.expect_count(2, 2);
  d.out().d = d.destination(0, Type::kU32);
  d.out().a = d.source(1, type);
  d.out().handler = type == Type::kU64   ? Handler{map_lanes<RankOf, uint32_t, uint64_t>}
                    : type == Type::kU32 ? Handler{map_lanes<RankOf, uint32_t, uint32_t>}
                                         : nullptr;
}

void decode_isspacep(Decoder& d) {
  const size_t space = d.require_any({"global", "shared", "local", "shared::cta", "shared::cluster", "const", "param"});
  d.expect_count(2, 2);
  d.out().d = d.predicate_destination(d.operand(0));
  d.out().a = d.source(1, Type::kU64);
  d.out().handler = space == 2                 ? is_in_space<kLocalWindow>
                    : space == 1 || space == 4 ? is_in_space<kSharedWindow>
                    : space == 0               ? is_in_space<0>
                                               : nullptr;
}

}  // namespace isobit::ptx
