// Operand types of PTX instructions and registers.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace isobit::ptx {

enum class Type : uint8_t {
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF64,
  kTf32,
  kE4m3x2,
  kE5m2x2,
  kE2m1x2,
  kUe8m0x2,
  kPred,
};

enum class TypeClass : uint8_t { kBits, kInteger, kFloat, kPred };

// Width of one value of the type in bits; a predicate has one.
int bits_of(Type type);
inline int bytes_of(Type type) { return bits_of(type) / 8; }
TypeClass class_of(Type type);
bool is_signed(Type type);
bool is_float(Type type);
std::string_view name_of(Type type);
std::optional<Type> parse_type(std::string_view name);  // name without the leading dot

// PTX lets a bit-size operand stand for any type of its width; integers mix signs; floats only match themselves.
bool compatible(Type operand, Type instruction);

}  // namespace isobit::ptx
