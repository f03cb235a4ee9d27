// cvt of two values at once: pairs of bf16, fp16, e4m3, e2m1 and ue8m0. The first source becomes the upper half.
#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/fp16.h"
#include "ptx/decode/families.h"
#include "ptx/engine/float_lanes.h"

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
// Powers of two: the exponent of |x|, upwards or towards zero; the smallest is 2^-127 and stands for zero too.
template <bool Up, bool Saturate>
struct PackUe8m0 {
  uint16_t operator()(float high, float low) const { return static_cast<uint16_t>(one(high) << 8 | one(low)); }
  static uint8_t one(float x) {
    const uint32_t magnitude = numerics::float_bits(x) & 0x7FFFFFFF;
    const bool finite = magnitude < 0x7F800000;
    uint32_t exponent = magnitude >> 23;
    if (Up && finite && (magnitude & 0x7FFFFF) != 0 && magnitude > 0x400000) ++exponent;
    if (Saturate && exponent == 0xFF && magnitude <= 0x7F800000) exponent = 0xFE;
    return static_cast<uint8_t>(exponent);
  }
};
struct UnpackUe8m0 {
  uint32_t operator()(uint16_t a) const {
    return uint32_t{one(static_cast<uint8_t>(a >> 8))} << 16 | one(static_cast<uint8_t>(a));
  }
  static uint16_t one(uint8_t code) {
    return code == 0 ? 0x0040 : code == 0xFF ? 0x7FFF : static_cast<uint16_t>(code << 7);
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

Handler scale_handler(Decoder& d) {
  const bool up = d.require_any({"rz", "rp"}) == 1, saturate = d.take("satfinite");
  const auto pick = [&]<bool Up>(std::bool_constant<Up>) -> Handler {
    return saturate ? map_lanes<PackUe8m0<Up, true>, uint16_t, float, float>
                    : map_lanes<PackUe8m0<Up, false>, uint16_t, float, float>;
  };
  return up ? pick(std::true_type{}) : pick(std::false_type{});
}

Handler unpack_handler(Type from) {
  switch (from) {
    case Type::kE4m3x2:
      return map_lanes<UnpackE4m3, uint32_t, uint16_t>;
    case Type::kE2m1x2:
      return map_lanes<UnpackE2m1, uint32_t, uint8_t>;
    default:
      return map_lanes<UnpackUe8m0, uint32_t, uint16_t>;
  }
}

}  // namespace

bool decode_packed_cvt(Decoder& d, Type to, Type from) {
  const bool packs = from == Type::kF32 && d.count() == 3;
  const bool unpacks = (to == Type::kF16x2 && (from == Type::kE4m3x2 || from == Type::kE2m1x2)) ||
                       (to == Type::kBf16x2 && from == Type::kUe8m0x2);
  if (!packs && !unpacks) return false;
  const bool scales = to == Type::kUe8m0x2;
  if (!scales) d.require("rn");
  if (packs) {
    d.out().handler = scales ? scale_handler(d) : pack_handler(d, to);
    d.out().d = d.destination(0, to);
    d.out().a = d.source(1, from);
    d.out().b = d.source(2, from);
    return d.out().handler != nullptr;
  }
  d.expect_count(2, 2);
  d.out().d = d.destination(0, to);
  d.out().a = d.source(1, from);
  d.out().handler = unpack_handler(from);
  return true;
}

}  // namespace isobit::ptx
