// add, sub, mul, fma, neg and abs on bf16 and fp16, one or two at a time, with one rounding.
#include <bit>
#include <cmath>

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"

namespace isobit::ptx {
namespace {

// x + y rounded to odd: a later rounding to fewer bits then acts as if it were the only one.
double add_to_odd(double x, double y) {
  const double sum = x + y;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - x, error = (x - (sum - part)) + (y - part);
  const uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (error == 0.0 || bits & 1) return sum;
  const bool away = (error > 0.0) == (sum > 0.0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

float narrow_to_odd(double x) {
  float f = static_cast<float>(x);
  if (!std::isfinite(x) || static_cast<double>(f) == x) return f;
  if (std::fabs(static_cast<double>(f)) > std::fabs(x)) f = std::nextafterf(f, 0.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(f) | 1);
}

template <class Format>
uint16_t fused(uint16_t a, uint16_t b, uint16_t c) {
  // The product of two such values is exact in fp64.
  const double product = static_cast<double>(Format::to_float(a)) * Format::to_float(b);
  return Format::from_float(narrow_to_odd(add_to_odd(product, Format::to_float(c))));
}

template <class Format>
uint16_t product(uint16_t a, uint16_t b) {
  return Format::from_float(narrow_to_odd(static_cast<double>(Format::to_float(a)) * Format::to_float(b)));
}

template <class Format, bool Subtract>
uint16_t sum(uint16_t a, uint16_t b) {
  const double y = Format::to_float(b);
  return Format::from_float(narrow_to_odd(add_to_odd(Format::to_float(a), Subtract ? -y : y)));
}

// The device gives the canonical NaN for any NaN (pairs: H200, 2026-11-29; one value is taken to be the same).
template <class Format, bool Negate>
uint16_t sign(uint16_t a) {
  if (std::isnan(Format::to_float(a))) return 0x7FFF;
  return static_cast<uint16_t>(Negate ? a ^ 0x8000 : a & 0x7FFF);
}

template <auto F>
struct Both {
  template <class... Ts>
  uint32_t operator()(Ts... words) const {
    return uint32_t{F(static_cast<uint16_t>(words >> 16)...)} << 16 | F(static_cast<uint16_t>(words)...);
  }
};
template <auto F>
struct One {
  template <class... Ts>
  uint16_t operator()(Ts... halves) const {
    return F(halves...);
  }
};

template <auto Bf16, auto Fp16>
Handler one_operand(Type type) {
  switch (type) {
    case Type::kBf16:
      return map_lanes<One<Bf16>, uint16_t, uint16_t>;
    case Type::kBf16x2:
      return map_lanes<Both<Bf16>, uint32_t, uint32_t>;
    case Type::kF16:
      return map_lanes<One<Fp16>, uint16_t, uint16_t>;
    case Type::kF16x2:
      return map_lanes<Both<Fp16>, uint32_t, uint32_t>;
    default:
      return nullptr;
  }
}

template <auto Bf16, auto Fp16>
Handler two_operands(Type type) {
  switch (type) {
    case Type::kBf16:
      return map_lanes<One<Bf16>, uint16_t, uint16_t, uint16_t>;
    case Type::kBf16x2:
      return map_lanes<Both<Bf16>, uint32_t, uint32_t, uint32_t>;
    case Type::kF16:
      return map_lanes<One<Fp16>, uint16_t, uint16_t, uint16_t>;
    case Type::kF16x2:
      return map_lanes<Both<Fp16>, uint32_t, uint32_t, uint32_t>;
    default:
      return nullptr;
  }
}

template <auto Bf16, auto Fp16>
Handler three_operands(Type type) {
  switch (type) {
    case Type::kBf16:
      return map_lanes<One<Bf16>, uint16_t, uint16_t, uint16_t, uint16_t>;
    case Type::kBf16x2:
      return map_lanes<Both<Bf16>, uint32_t, uint32_t, uint32_t, uint32_t>;
    case Type::kF16:
      return map_lanes<One<Fp16>, uint16_t, uint16_t, uint16_t, uint16_t>;
    case Type::kF16x2:
      return map_lanes<Both<Fp16>, uint32_t, uint32_t, uint32_t, uint32_t>;
    default:
      return nullptr;
  }
}

using numerics::Bf16;
using numerics::Fp16;

}  // namespace

bool is_half(Type type) {
  return type == Type::kBf16 || type == Type::kBf16x2 || type == Type::kF16 || type == Type::kF16x2;
}

void decode_half(Decoder& d, Type type) {
  d.require("rn");
  const std::string_view name = d.opcode();
  decode_uniform(d, type, name == "fma" ? 3 : 2);
  d.out().handler = name == "add"   ? two_operands<sum<Bf16, false>, sum<Fp16, false>>(type)
                    : name == "sub" ? two_operands<sum<Bf16, true>, sum<Fp16, true>>(type)
                    : name == "mul" ? two_operands<product<Bf16>, product<Fp16>>(type)
                                    : three_operands<fused<Bf16>, fused<Fp16>>(type);
}

void decode_half_sign(Decoder& d, Type type, bool negate) {
  decode_uniform(d, type, 1);
  d.out().handler = negate ? one_operand<sign<Bf16, true>, sign<Fp16, true>>(type)
                           : one_operand<sign<Bf16, false>, sign<Fp16, false>>(type);
}

}  // namespace isobit::ptx
