#include "ptx/syntax/types.h"

#include <array>

namespace isobit::ptx {
namespace {

struct TypeRow {
  Type type;
  std::string_view name;
  int bits;
  TypeClass group;
  bool is_signed;
};

constexpr auto kRows = std::to_array<TypeRow>({
    {Type::kB8, "b8", 8, TypeClass::kBits, false},          {Type::kB16, "b16", 16, TypeClass::kBits, false},
    {Type::kB32, "b32", 32, TypeClass::kBits, false},       {Type::kB64, "b64", 64, TypeClass::kBits, false},
    {Type::kB128, "b128", 128, TypeClass::kBits, false},    {Type::kU8, "u8", 8, TypeClass::kInteger, false},
    {Type::kU16, "u16", 16, TypeClass::kInteger, false},    {Type::kU32, "u32", 32, TypeClass::kInteger, false},
    {Type::kU64, "u64", 64, TypeClass::kInteger, false},    {Type::kS8, "s8", 8, TypeClass::kInteger, true},
    {Type::kS16, "s16", 16, TypeClass::kInteger, true},     {Type::kS32, "s32", 32, TypeClass::kInteger, true},
    {Type::kS64, "s64", 64, TypeClass::kInteger, true},     {Type::kF16, "f16", 16, TypeClass::kFloat, true},
    {Type::kF16x2, "f16x2", 32, TypeClass::kFloat, true},   {Type::kBf16, "bf16", 16, TypeClass::kFloat, true},
    {Type::kBf16x2, "bf16x2", 32, TypeClass::kFloat, true}, {Type::kF32, "f32", 32, TypeClass::kFloat, true},
    {Type::kF64, "f64", 64, TypeClass::kFloat, true},       {Type::kTf32, "tf32", 32, TypeClass::kFloat, true},
    {Type::kE4m3x2, "e4m3x2", 16, TypeClass::kFloat, true}, {Type::kE5m2x2, "e5m2x2", 16, TypeClass::kFloat, true},
    {Type::kE2m1x2, "e2m1x2", 8, TypeClass::kFloat, true},  {Type::kUe8m0x2, "ue8m0x2", 16, TypeClass::kFloat, false},
    {Type::kPred, "pred", 1, TypeClass::kPred, false},
});

const TypeRow& row(Type type) { return kRows[static_cast<size_t>(type)]; }

}  // namespace

int bits_of(Type type) { return row(type).bits; }
TypeClass class_of(Type type) { return row(type).group; }
bool is_signed(Type type) { return row(type).is_signed; }
bool is_float(Type type) { return row(type).group == TypeClass::kFloat; }
std::string_view name_of(Type type) { return row(type).name; }

std::optional<Type> parse_type(std::string_view name) {
  for (const TypeRow& r : kRows) {
    if (r.name == name) return r.type;
  }
  return std::nullopt;
}

bool compatible(Type operand, Type instruction) {
  if (bits_of(operand) != bits_of(instruction)) return false;
  const TypeClass a = class_of(operand), b = class_of(instruction);
  if (a == TypeClass::kPred || b == TypeClass::kPred) return a == b;
  return a == TypeClass::kBits || b == TypeClass::kBits || a == b;
}

}  // namespace isobit::ptx
