// ld, st and prefetch.
#include <cstring>

#include "ptx/decode/families.h"
#include "ptx/engine/memory_access.h"
#include "ptx/memory/ordering.h"

namespace isobit::ptx {
namespace {

// mode of a load: how an element lands in its register.
constexpr uint32_t kWideRegister = 1, kSignExtend = 2, kOrdered = 4;

template <class T>
void load_element(Warp& w, const Instruction& i, Slot slot, int lane, const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (sizeof(T) == 8) {
    w.wide(slot)[lane] = value;
  } else if (i.mode & kSignExtend) {
    const std::make_signed_t<T> s = static_cast<std::make_signed_t<T>>(value);
    if (i.mode & kWideRegister)
      w.wide(slot)[lane] = static_cast<uint64_t>(int64_t{s});
    else
      w.word(slot)[lane] = static_cast<uint32_t>(int32_t{s});
  } else if (i.mode & kWideRegister) {
    w.wide(slot)[lane] = value;
  } else {
    w.word(slot)[lane] = value;
  }
}

template <class T>
void load(Warp& w, const Instruction& i, LaneMask active) {
  const uint32_t total = static_cast<uint32_t>(sizeof(T) * i.list.size());
  // Addresses are read first: the destination may be the address register.
  uint64_t addresses[kLanes];
  for_each_lane(active, [&](int l) { addresses[l] = effective_address(w, i, l); });
  for_each_lane(active, [&](int l) {
    const std::byte* from = access_memory(w, i.space, addresses[l], l, total, false, i.mode & kOrdered);
    for (size_t k = 0; k < i.list.size(); ++k) load_element<T>(w, i, i.list[k], l, from + k * sizeof(T));
    if (i.mode & kOrdered) observe(w, i, reinterpret_cast<uint64_t>(from));
  });
}

template <class T>
void store(Warp& w, const Instruction& i, LaneMask active) {
  const uint32_t total = static_cast<uint32_t>(sizeof(T) * i.list.size());
  for_each_lane(active, [&](int l) {
    std::byte* to = access_memory(w, i.space, effective_address(w, i, l), l, total, true, i.mode & kOrdered);
    for (size_t k = 0; k < i.list.size(); ++k) {
      const T value = sizeof(T) == 8 || (i.mode & kWideRegister) ? static_cast<T>(w.wide(i.list[k])[l])
                                                                 : static_cast<T>(w.word(i.list[k])[l]);
      std::memcpy(to + k * sizeof(T), &value, sizeof value);
    }
    if (i.mode & kOrdered) publish(w, i, reinterpret_cast<uint64_t>(to));
  });
}

void load128(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) {
    const std::byte* from = access_memory(w, i.space, effective_address(w, i, l), l, 16, false);
    std::memcpy(w.wide(i.d) + l, from, 8);
    std::memcpy(w.wide(i.d + 2) + l, from + 8, 8);
  });
}

void do_nothing(Warp&, const Instruction&, LaneMask) {}

Space take_space(Decoder& d) {
  const auto space =
      d.take_any({"global", "shared", "shared::cta", "shared::cluster", "param", "param::entry", "const", "local"});
  if (!space) return Space::kGeneric;
  constexpr Space kSpaces[] = {Space::kGlobal, Space::kShared, Space::kShared, Space::kShared,
                               Space::kParam,  Space::kParam,  Space::kConst,  Space::kLocal};
  return kSpaces[*space];
}

// Hints about caches change no value.
void take_cache_hints(Decoder& d) {
  d.take_any({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  d.take("nc");
  std::string_view rest;
  while (d.take_prefix("L1::", rest) || d.take_prefix("L2::", rest)) {
    if (rest == "cache_hint") d.fail("an access with a cache policy operand is not supported");
  }
}

template <class F>
Handler by_size(Type type, F&& f) {
  switch (bits_of(type)) {
    case 8:
      return f(uint8_t{});
    case 16:
      return f(uint16_t{});
    case 32:
      return f(uint32_t{});
    case 64:
      return f(uint64_t{});
    default:
      return nullptr;
  }
}

void decode_elements(Decoder& d, const Operand& registers, Type type, size_t count, bool is_load) {
  Instruction& out = d.out();
  const bool vector = registers.kind == OperandKind::kVector;
  if (vector != (count > 1) || (vector && registers.parts.size() != count))
    d.fail("the vector has another length than the modifier says");
  bool wide = false, any_wide = false, all_wide = true;
  const auto add = [&](const Operand& o) {
    out.list.push_back(d.loose_register(o, type, is_load, wide));
    any_wide |= wide;
    all_wide &= wide;
  };
  if (vector)
    for (const Operand& part : registers.parts) add(part);
  else
    add(registers);
  if (any_wide && !all_wide) d.fail("the vector mixes register widths");
  if (any_wide) out.mode |= kWideRegister;
  if (is_load && is_signed(type) && class_of(type) == TypeClass::kInteger) out.mode |= kSignExtend;
}

void decode_access(Decoder& d, bool is_load) {
  Instruction& out = d.out();
  const auto order = take_memory_order(d);
  take_cache_hints(d);
  const Space space = take_space(d);
  const auto vector = d.take_any({"v2", "v4", "v8"});
  const size_t count = vector ? size_t{2} << *vector : 1;
  const Type type = d.take_type();
  d.expect_count(2, 2);
  out.mode = order ? kOrdered : 0;
  out.order = order.value_or(MemoryOrder::kWeak);
  d.address(is_load ? 1 : 0, space);
  if (!is_load && (space == Space::kParam || space == Space::kConst)) d.fail("this state space cannot be written");
  if (bits_of(type) == 128) {
    if (count != 1) d.fail("no vectors of 128-bit elements");
    if (!is_load) d.fail("st.b128 is not supported");
    out.d = d.destination(0, type);
    out.handler = load128;
    return;
  }
  decode_elements(d, d.operand(is_load ? 0 : 1), type, count, is_load);
  out.handler = by_size(type, [&]<class T>(T) -> Handler { return is_load ? Handler{load<T>} : Handler{store<T>}; });
}

}  // namespace

void decode_ld(Decoder& d) { decode_access(d, true); }
void decode_st(Decoder& d) { decode_access(d, false); }

// Prefetches only warm caches or fetch a tensor map; the address is not followed.
void decode_prefetch(Decoder& d) {
  d.take_any({"global", "param", "const", "local"});
  d.require_any({"L1", "L2", "tensormap", "L2::evict_last", "L2::evict_normal"});
  d.expect_count(1, 1);
  d.address(0, Space::kGeneric);
  d.out().handler = do_nothing;
}

}  // namespace isobit::ptx
