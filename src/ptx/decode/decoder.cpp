#include "ptx/decode/decoder.h"

#include <algorithm>
#include <bit>

#include "ptx/decode/special_registers.h"

namespace isobit::ptx {

Decoder::Decoder(const Statement& statement, KernelScope& scope)
    : statement_(statement), scope_(scope), left_(statement.modifiers) {}

void Decoder::fail(const std::string& message) const {
  throw ParseFailure{{statement_.line, message + ": " + std::string(statement_.text)}};
}

Instruction Decoder::decode() {
  out_.line = statement_.line;
  out_.text = statement_.text;
  if (statement_.guard >= 0) {
    out_.guard = scope_.row_of(statement_.guard);
    out_.guard_negated = statement_.guard_negated;
  }
  const DecodeFunction family = find_family(statement_.opcode);
  if (!family) fail("unknown instruction");
  family(*this);
  if (!left_.empty()) fail("unknown modifier ." + std::string(left_.front()));
  const bool needs_handler = out_.flow == Flow::kNormal || out_.flow == Flow::kMayStop;
  if (needs_handler && !out_.handler) fail("unsupported combination of modifiers and types");
  return std::move(out_);
}

bool Decoder::take(std::string_view modifier) {
  const auto it = std::find(left_.begin(), left_.end(), modifier);
  if (it == left_.end()) return false;
  left_.erase(it);
  return true;
}

void Decoder::require(std::string_view modifier) {
  if (!take(modifier)) fail("expected modifier ." + std::string(modifier));
}

std::optional<size_t> Decoder::take_any(std::initializer_list<std::string_view> choices) {
  size_t index = 0;
  for (const std::string_view choice : choices) {
    if (take(choice)) return index;
    ++index;
  }
  return std::nullopt;
}

size_t Decoder::require_any(std::initializer_list<std::string_view> choices) {
  const auto index = take_any(choices);
  if (!index) {
    std::string names;
    for (const std::string_view choice : choices) names += " ." + std::string(choice);
    fail("expected one of" + names);
  }
  return *index;
}

std::optional<Type> Decoder::take_optional_type() {
  for (size_t i = left_.size(); i-- > 0;) {
    if (const auto type = parse_type(left_[i])) {
      left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(i));
      return type;
    }
  }
  return std::nullopt;
}

Type Decoder::take_type() {
  const auto type = take_optional_type();
  if (!type) fail("expected a type");
  return *type;
}

bool Decoder::take_prefix(std::string_view prefix, std::string_view& rest) {
  for (auto it = left_.begin(); it != left_.end(); ++it) {
    if (it->substr(0, prefix.size()) == prefix) {
      rest = it->substr(prefix.size());
      left_.erase(it);
      return true;
    }
  }
  return false;
}

void Decoder::expect_count(size_t least, size_t most) {
  if (count() < least || count() > most) fail("wrong number of operands, got " + std::to_string(count()));
}

const Operand& Decoder::operand(size_t index) const {
  if (index >= statement_.operands.size()) fail("missing operand " + std::to_string(index + 1));
  return statement_.operands[index];
}

void Decoder::check_class(const Operand& operand, Type type) const {
  if (compatible(operand.type, type)) return;
  fail("operand " + std::string(operand.name) + " is a ." + std::string(name_of(operand.type)) +
       " register where the instruction wants ." + std::string(name_of(type)));
}

Slot Decoder::register_row(const Operand& operand) {
  const Slot row = scope_.row_of(operand.reg);
  out_.rows.push_back(row);
  return row;
}

Slot Decoder::immediate(const Operand& operand, Type type) {
  if (type == Type::kPred) fail("a literal cannot stand for a predicate");
  if (operand.kind == OperandKind::kFloat32) {
    if (bits_of(type) != 32) fail("a single-precision literal needs a 32-bit operand");
    return scope_.constant(operand.bits, 32);
  }
  if (operand.kind == OperandKind::kFloat64) {
    if (type == Type::kF32) {
      return scope_.constant(std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits))), 32);
    }
    if (bits_of(type) != 64) fail("a double-precision literal needs a 64-bit operand");
    return scope_.constant(operand.bits, 64);
  }
  if (is_float(type) && bits_of(type) > 32) fail("an integer literal cannot stand for a float operand");
  return scope_.constant(operand.bits, bits_of(type));
}

Slot Decoder::special_source(const Operand& operand, Type type) {
  const auto which = find_special_register(operand.name);
  if (!which) fail("unknown special register " + std::string(operand.name));
  if (bits_of(type) != 32 || is_float(type)) fail("a special register has 32 bits");
  return scope_.special(*which);
}

Slot Decoder::source(const Operand& operand, Type type) {
  if (operand.negated) fail("'!' is not allowed on this operand");
  switch (operand.kind) {
    case OperandKind::kRegister:
      check_class(operand, type);
      return register_row(operand);
    case OperandKind::kInteger:
    case OperandKind::kFloat32:
    case OperandKind::kFloat64:
      return immediate(operand, type);
    case OperandKind::kSpecial:
      return special_source(operand, type);
    case OperandKind::kSymbol: {
      if (is_float(type) || (bits_of(type) != 32 && bits_of(type) != 64)) fail("an address needs 32 or 64 bits");
      const auto slot = scope_.symbol(operand.name, bits_of(type));
      if (!slot) fail("unknown symbol " + std::string(operand.name));
      return *slot;
    }
    default:
      fail("an operand of this form is not allowed here");
  }
}

Slot Decoder::destination(const Operand& operand, Type type) {
  if (operand.kind == OperandKind::kSink) return scope_.scratch();
  if (operand.kind != OperandKind::kRegister || operand.negated) fail("the destination must be a register");
  check_class(operand, type);
  return register_row(operand);
}

Slot Decoder::predicate(const Operand& operand) {
  if (operand.negated) fail("'!' is not supported on this operand");
  if (operand.kind == OperandKind::kInteger) return scope_.constant_predicate(operand.bits != 0);
  if (operand.kind != OperandKind::kRegister || operand.type != Type::kPred) fail("expected a predicate");
  return scope_.row_of(operand.reg);
}

Slot Decoder::predicate_destination(const Operand& operand) {
  if (operand.kind == OperandKind::kSink) return scope_.scratch_predicate();
  if (operand.kind != OperandKind::kRegister || operand.type != Type::kPred) fail("expected a predicate");
  return scope_.row_of(operand.reg);
}

uint64_t Decoder::literal(size_t index) const {
  if (operand(index).kind != OperandKind::kInteger)
    fail("operand " + std::to_string(index + 1) + " must be an integer literal");
  return operand(index).bits;
}

void Decoder::address(size_t index, Space space) {
  const Operand& o = operand(index);
  if (o.kind != OperandKind::kAddress || o.parts.size() != 1) fail("expected an address in brackets");
  const Operand& base = o.parts[0];
  out_.immediate = o.offset;
  const bool is_register = base.kind == OperandKind::kRegister;
  const bool narrow_space = space == Space::kShared || space == Space::kLocal;
  int bits = narrow_space ? 32 : 64;
  if (is_register) bits = bits_of(base.type);
  if (bits != 64 && !(bits == 32 && narrow_space)) fail("this state space needs a 64-bit address");
  if (base.kind == OperandKind::kSymbol) {
    const auto declared = scope_.space_of(base.name);
    if (!declared) fail("unknown symbol " + std::string(base.name));
    if (*declared != space) fail("symbol " + std::string(base.name) + " is in another state space");
  }
  out_.wide_address = bits == 64;
  out_.space = space;
  out_.a = source(base, bits == 64 ? Type::kB64 : Type::kB32);
}

Slot Decoder::plain_address(const Operand& o, int bits) {
  if (o.kind != OperandKind::kAddress || o.offset != 0) fail("expected an address in brackets without an offset");
  return source(o.parts[0], bits == 64 ? Type::kB64 : Type::kB32);
}

Slot Decoder::loose_register(const Operand& o, Type type, bool is_destination, bool& wide) {
  wide = bits_of(type) > 32;
  if (o.kind == OperandKind::kRegister && o.type != Type::kPred && bits_of(o.type) > bits_of(type)) {
    if (is_float(type) && is_float(o.type)) fail("a wider float register cannot hold this type");
    wide = bits_of(o.type) > 32;
    return register_row(o);
  }
  return is_destination ? destination(o, type) : source(o, type);
}

std::optional<uint32_t> Decoder::named_parameter(size_t index) const {
  const Operand& o = operand(index);
  if (o.kind != OperandKind::kAddress || o.parts[0].kind != OperandKind::kSymbol) return std::nullopt;
  return scope_.parameter_offset(o.parts[0].name);
}

}  // namespace isobit::ptx
