// cvt of two values at once: pairs of bf16, fp16, e4m3 and e2m1. The first source becomes the upper half.
#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/fp16.h"
#include "ptx/families.h"
#include "ptx/float_lanes.h"

namespace isobit::ptx {
namespace {

template <class Format, bool Relu>
struct PackHalves {
  uint32_t operator()(float high, float low) const { return uint32_t{one(high)} << 16 | one(low); }
  static uint16_t one(float x) {
    const uint16_t r = Format::from_float(x);
    return Relu && r >= 0x8000 && x == x ? 0 : r;
  }
};
struct PackE4m3 {
  uint16_t operator()(float high, float low) const {
    return static_cast<uint16_t>(numerics::e4m3_from_float(high) << 8 | numerics::e4m3_from_float(low));
  }
};
struct PackE2m1 {
  uint8_t operator()(float high, float low) const {
    return static_cast<uint8_t>(numerics::e2m1_from_float(high) << 4 | numerics::e2m1_from_float(low));
  }
};
// Every e4m3 and e2m1 value is an fp16 value.
struct UnpackE4m3 {
  uint32_t operator()(uint16_t a) const {
    return uint32_t{one(static_cast<uint8_t>(a >> 8))} << 16 | one(static_cast<uint8_t>(a));
  }
  static uint16_t one(uint8_t code) { return numerics::fp16_from_float(numerics::e4m3_to_float(code)); }
};
struct UnpackE2m1 {
  uint32_t operator()(uint8_t a) const { return uint32_t{one(a >> 4)} << 16 | one(a & 15); }
  static uint16_t one(uint8_t code) { return numerics::fp16_from_float(numerics::e2m1_to_float(code)); }
};

Handler pack_handler(Decoder& d, Type to) {
  switch (to) {
    case Type::kBf16x2: {
      const bool relu = d.take("relu");
      return relu ? map_lanes<PackHalves<numerics::Bf16, true>, uint32_t, float, float>
                  : map_lanes<PackHalves<numerics::Bf16, false>, uint32_t, float, float>;
    }
    case Type::kF16x2: {
      const bool relu = d.take("relu");
      return relu ? map_lanes<PackHalves<numerics::Fp16, true>, uint32_t, float, float>
                  : map_lanes<PackHalves<numerics::Fp16, false>, uint32_t, float, float>;
    }
    case Type::kE4m3x2:
      d.require("satfinite");
      return map_lanes<PackE4m3, uint16_t, float, float>;
    case Type::kE2m1x2:
      d.require("satfinite");
      return map_lanes<PackE2m1, uint8_t, float, float>;
    default:
      return nullptr;
  }
}

}  // namespace

bool decode_packed_cvt(Decoder& d, Type to, Type from) {
  const bool packs = from == Type::kF32 && d.count() == 3;
  const bool unpacks = to == Type::kF16x2 && (from == Type::kE4m3x2 || from == Type::kE2m1x2);
  if (!packs && !unpacks) return false;
  d.require("rn");
  if (packs) {
    d.out().handler = pack_handler(d, to);
    d.out().d = d.destination(0, to);
    d.out().a = d.source(1, from);
    d.out().b = d.source(2, from);
    return d.out().handler != nullptr;
  }
  d.expect_count(2, 2);
  d.out().d = d.destination(0, to);
  d.out().a = d.source(1, from);
  d.out().handler =
      from == Type::kE4m3x2 ? map_lanes<UnpackE4m3, uint32_t, uint16_t> : map_lanes<UnpackE2m1, uint32_t, uint8_t>;
  return true;
}

}  // namespace isobit::ptx
