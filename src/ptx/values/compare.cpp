// setp and selp.
#include <cmath>

#include "ptx/decode/families.h"
#include "ptx/engine/float_lanes.h"

namespace isobit::ptx {
namespace {

enum class Comparison : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan };
enum class Combine : uint32_t { kNone, kAnd, kOr, kXor };

// Ordered comparisons are false when an operand is NaN, the others true; for integers the two agree.
template <Comparison C>
struct Compare {
  template <class T>
  bool operator()(T a, T b) const {
    if constexpr (C == Comparison::kEq) return a == b;
    if constexpr (C == Comparison::kNe) return a < b || a > b;
    if constexpr (C == Comparison::kLt) return a < b;
    if constexpr (C == Comparison::kLe) return a <= b;
    if constexpr (C == Comparison::kGt) return a > b;
    if constexpr (C == Comparison::kGe) return a >= b;
    if constexpr (C == Comparison::kEqu) return !(a < b || a > b);
    if constexpr (C == Comparison::kNeu) return a != b;
    if constexpr (C == Comparison::kLtu) return !(a >= b);
    if constexpr (C == Comparison::kLeu) return !(a > b);
    if constexpr (C == Comparison::kGtu) return !(a <= b);
    if constexpr (C == Comparison::kGeu) return !(a < b);
    if constexpr (C == Comparison::kNum) return a == a && b == b;
    return a != a || b != b;
  }
};

LaneMask combine(Combine how, LaneMask a, LaneMask b) {
  switch (how) {
    case Combine::kAnd:
      return a & b;
    case Combine::kOr:
      return a | b;
    case Combine::kXor:
      return a ^ b;
    case Combine::kNone:
      break;
  }
  return a;
}

// p = (a op b) combined with c, q = !(a op b) combined with c. mode: Combine, bit 2 negates c, bit 3 flushes
// subnormals.
constexpr uint32_t kNegate = 4, kFlush = 8;

template <class T, Comparison C>
void set_predicate(Warp& w, const Instruction& i, LaneMask active) {
  const LaneStorage<T>*a = w.row<LaneStorage<T>>(i.a), *b = w.row<LaneStorage<T>>(i.b);
  LaneMask result = 0;
  for (int l = 0; l < kLanes; ++l) {
    T x = read_lane<T>(a, l), y = read_lane<T>(b, l);
    if constexpr (std::is_same_v<T, float>) {
      if (i.mode & kFlush) {
        x = flush_subnormal(x);
        y = flush_subnormal(y);
      }
    }
    result |= static_cast<LaneMask>(Compare<C>{}(x, y)) << l;
  }
  const Combine how = static_cast<Combine>(i.mode & 3);
  LaneMask other = how == Combine::kNone ? 0 : w.predicate(i.c);
  if (i.mode & kNegate) other = ~other;
  w.set_predicate(i.d, combine(how, result, other), active);
  if (i.d2 != kNoSlot) w.set_predicate(i.d2, combine(how, ~result, other), active);
}

template <class T>
Handler comparison_handler(Comparison c) {
  using enum Comparison;
  switch (c) {
    case kEq:
      return set_predicate<T, kEq>;
    case kNe:
      return set_predicate<T, kNe>;
    case kLt:
      return set_predicate<T, kLt>;
    case kLe:
      return set_predicate<T, kLe>;
    case kGt:
      return set_predicate<T, kGt>;
    case kGe:
      return set_predicate<T, kGe>;
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (c) {
      case kEqu:
        return set_predicate<T, kEqu>;
      case kNeu:
        return set_predicate<T, kNeu>;
      case kLtu:
        return set_predicate<T, kLtu>;
      case kLeu:
        return set_predicate<T, kLeu>;
      case kGtu:
        return set_predicate<T, kGtu>;
      case kGeu:
        return set_predicate<T, kGeu>;
      case kNum:
        return set_predicate<T, kNum>;
      case kNan:
        return set_predicate<T, kNan>;
      default:
        break;
    }
  }
  return nullptr;
}

Handler comparison_handler(Type type, Comparison c) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
      return comparison_handler<uint16_t>(c);
    case Type::kS16:
      return comparison_handler<int16_t>(c);
    case Type::kB32:
    case Type::kU32:
      return comparison_handler<uint32_t>(c);
    case Type::kS32:
      return comparison_handler<int32_t>(c);
    case Type::kB64:
    case Type::kU64:
      return comparison_handler<uint64_t>(c);
    case Type::kS64:
      return comparison_handler<int64_t>(c);
    case Type::kF32:
      return comparison_handler<float>(c);
    case Type::kF64:
      return comparison_handler<double>(c);
    default:
      return nullptr;
  }
}

Comparison take_comparison(Decoder& d, Type type) {
  if (const auto u = d.take_any({"lo", "ls", "hi", "hs"})) {  // unsigned spellings
    if (is_signed(type)) d.fail("an unsigned comparison of a signed type");
    constexpr Comparison kUnsigned[] = {Comparison::kLt, Comparison::kLe, Comparison::kGt, Comparison::kGe};
    return kUnsigned[*u];
  }
  return static_cast<Comparison>(
      d.require_any({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}));
}

template <class T>
void select(Warp& w, const Instruction& i, LaneMask active) {
  const T *a = w.row<T>(i.a), *b = w.row<T>(i.b);
  T* d = w.row<T>(i.d);
  const LaneMask p = w.predicate(i.c);
  for_each_lane(active, [&](int l) { d[l] = p >> l & 1 ? a[l] : b[l]; });
}

}  // namespace

void decode_setp(Decoder& d) {
  const Type type = d.take_type();
  Instruction& out = d.out();
  const Comparison comparison = take_comparison(d, type);
  if (const auto how = d.take_any({"and", "or", "xor"})) out.mode = static_cast<uint32_t>(*how) + 1;
  if (d.take("ftz")) out.mode |= kFlush;
  const size_t operands = out.mode & 3 ? 4 : 3;
  d.expect_count(operands, operands);
  out.d = d.predicate_destination(d.operand(0));
  if (!d.operand(0).parts.empty()) out.d2 = d.predicate_destination(d.operand(0).parts[0]);
  out.a = d.source(1, type);
  out.b = d.source(2, type);
  if (operands == 4) {
    Operand c = d.operand(3);
    if (c.negated) out.mode |= kNegate;
    c.negated = false;
    out.c = d.predicate(c);
  }
  out.handler = comparison_handler(type, comparison);
}

void decode_selp(Decoder& d) {
  const Type type = d.take_type();
  d.expect_count(4, 4);
  d.out().d = d.destination(0, type);
  d.out().a = d.source(1, type);
  d.out().b = d.source(2, type);
  d.out().c = d.predicate(3);
  d.out().handler = bits_of(type) == 64 ? select<uint64_t> : bits_of(type) <= 32 ? select<uint32_t> : nullptr;
}

}  // namespace isobit::ptx
