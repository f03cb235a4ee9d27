#include "ptx/syntax/body_parser.h"

namespace isobit::ptx {
namespace {

uint64_t parse_decimal(std::string_view digits) {
  uint64_t value = 0;
  for (const char c : digits) value = value * 10 + static_cast<uint64_t>(c - '0');
  return value;
}

}  // namespace

void BodyParser::run() {
  in_.expect("{");
  function_.scopes.push_back({});
  scope_ = 0;
  while (true) {
    if (in_.at_end()) in_.fail("function body is not closed");
    if (in_.accept("}")) {
      scope_ = function_.scopes[static_cast<size_t>(scope_)].parent;
      if (scope_ < 0) return;
    } else {
      parse_item();
    }
  }
}

void BodyParser::parse_item() {
  if (in_.accept("{")) {
    Scope inner;
    inner.parent = scope_;
    scope_ = static_cast<int>(function_.scopes.size());
    function_.scopes.push_back(std::move(inner));
  } else if (in_.accept(";")) {
    return;  // an empty statement, legal after inline assembly
  } else if (in_.peek().kind == TokenKind::kModifier) {
    parse_directive();
  } else if (in_.peek().kind == TokenKind::kWord && in_.is(":", 1)) {
    parse_label();
  } else {
    parse_instruction();
  }
}

void BodyParser::parse_label() {
  const Token label = in_.next();
  in_.next();
  Scope& scope = function_.scopes[static_cast<size_t>(scope_)];
  if (in_.accept_modifier("branchtargets")) {
    auto& targets = scope.branch_targets[label.text];
    do targets.push_back(in_.expect(TokenKind::kWord, "a label").text);
    while (in_.accept(","));
    in_.expect(";");
    return;
  }
  if (!scope.labels.emplace(label.text, function_.statements.size()).second) {
    throw ParseFailure{{label.line, "label " + std::string(label.text) + " is defined twice"}};
  }
}

void BodyParser::parse_directive() {
  const Token d = in_.peek();
  if (d.text == "loc" || d.text == "file") return in_.skip_line();
  in_.next();
  if (d.text == "pragma") {
    in_.expect(TokenKind::kString, "a string");
    in_.expect(";");
  } else if (d.text == "reg") {
    parse_registers();
  } else if (d.text == "shared" || d.text == "local") {
    Variable v = parse_variable(in_, false);
    in_.expect(";");
    (d.text == "shared" ? function_.shared : function_.local).push_back(std::move(v));
  } else {
    throw ParseFailure{{d.line, "unknown directive ." + std::string(d.text) + " in a function"}};
  }
}

void BodyParser::parse_registers() {
  const Token type_token = in_.expect(TokenKind::kModifier, "a register type");
  const auto type = parse_type(type_token.text);
  if (!type) throw ParseFailure{{type_token.line, "unknown register type ." + std::string(type_token.text)}};
  Scope& scope = function_.scopes[static_cast<size_t>(scope_)];
  do {
    const Token name = in_.expect(TokenKind::kWord, "a register name");
    uint64_t count = 0;
    const bool range = in_.accept("<");
    if (range) {
      count = in_.integer();
      in_.expect(">");
      if (count > 1u << 20) throw ParseFailure{{name.line, "register range is too long"}};
    }
    if (!range) {
      scope.registers[name.text] = static_cast<int32_t>(function_.registers.size());
      function_.registers.push_back(*type);
      continue;
    }
    // A range is stored under its stem; the number is added when a use is looked up.
    scope.register_ranges[name.text] = {static_cast<int32_t>(function_.registers.size()), static_cast<uint32_t>(count)};
    function_.registers.insert(function_.registers.end(), count, *type);
  } while (in_.accept(","));
  in_.expect(";");
}

int32_t BodyParser::find_register(std::string_view name) const {
  size_t stem = name.size();
  while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9') --stem;
  const std::string_view digits = name.substr(stem);
  const bool canonical = !digits.empty() && digits.size() < 9 && (digits.size() == 1 || digits[0] != '0');
  for (int s = scope_; s >= 0; s = function_.scopes[static_cast<size_t>(s)].parent) {
    const Scope& scope = function_.scopes[static_cast<size_t>(s)];
    if (const auto it = scope.registers.find(name); it != scope.registers.end()) return it->second;
    if (!canonical) continue;
    const auto range = scope.register_ranges.find(name.substr(0, stem));
    if (range == scope.register_ranges.end()) continue;
    const uint64_t index = parse_decimal(digits);
    if (index < range->second.count) return range->second.first + static_cast<int32_t>(index);
  }
  return -1;
}

void BodyParser::parse_instruction() {
  Statement s;
  s.line = in_.peek().line;
  s.scope = scope_;
  const char* begin = in_.peek().begin;
  if (in_.accept("@")) {
    s.guard_negated = in_.accept("!");
    const Token guard = in_.expect(TokenKind::kWord, "a guard predicate");
    s.guard = find_register(guard.text);
    if (s.guard < 0 || function_.registers[static_cast<size_t>(s.guard)] != Type::kPred) {
      throw ParseFailure{{guard.line, "guard " + std::string(guard.text) + " is not a predicate register"}};
    }
  }
  s.opcode = in_.expect(TokenKind::kWord, "an instruction").text;
  while (in_.peek().kind == TokenKind::kModifier) s.modifiers.push_back(in_.next().text);
  parse_operands(s);
  const char* end = in_.peek().begin;
  in_.expect(";");
  s.text = source_.substr(static_cast<size_t>(begin - source_.data()), static_cast<size_t>(end - begin));
  function_.statements.push_back(std::move(s));
}

void BodyParser::parse_operands(Statement& s) {
  if (in_.is(";")) return;
  do {
    Operand operand = parse_operand();
    if (in_.accept("|")) operand.parts.push_back(parse_operand());
    s.operands.push_back(std::move(operand));
  } while (in_.accept(","));
}

Operand BodyParser::parse_operand() {
  if (in_.is("[")) return parse_address();
  if (in_.is("{")) return parse_vector();
  return parse_simple_operand();
}

Operand BodyParser::parse_address() {
  Operand address;
  address.kind = OperandKind::kAddress;
  in_.expect("[");
  address.parts.push_back(parse_simple_operand());
  if (in_.accept("+")) address.offset = static_cast<int64_t>(in_.integer());
  if (in_.accept(",")) address.parts.push_back(parse_operand());
  in_.expect("]");
  return address;
}

Operand BodyParser::parse_vector() {
  Operand vector;
  vector.kind = OperandKind::kVector;
  in_.expect("{");
  do vector.parts.push_back(parse_simple_operand());
  while (in_.accept(","));
  in_.expect("}");
  return vector;
}

Operand BodyParser::parse_simple_operand() {
  if (in_.accept("!")) {
    Operand operand = parse_name();
    operand.negated = true;
    return operand;
  }
  if (in_.is("-") || in_.peek().kind == TokenKind::kNumber) return parse_number();
  return parse_name();
}

Operand BodyParser::parse_number() {
  Operand operand;
  operand.kind = OperandKind::kInteger;
  const Token& token = in_.peek();
  if (token.kind == TokenKind::kNumber && token.text.size() > 2 && token.text[0] == '0') {
    const char form = token.text[1];
    if (form == 'f' || form == 'F' || form == 'd' || form == 'D') {
      operand.kind = form == 'f' || form == 'F' ? OperandKind::kFloat32 : OperandKind::kFloat64;
      operand.bits = parse_integer("0x" + std::string(token.text.substr(2)), token.line);
      in_.next();
      return operand;
    }
  }
  operand.bits = in_.integer();
  return operand;
}

Operand BodyParser::parse_name() {
  const Token token = in_.expect(TokenKind::kWord, "an operand");
  Operand operand;
  operand.name = token.text;
  if (token.text == "_") return operand;
  operand.reg = find_register(token.text);
  if (operand.reg >= 0) {
    operand.kind = OperandKind::kRegister;
    operand.type = function_.registers[static_cast<size_t>(operand.reg)];
  } else if (token.text[0] == '%') {
    operand.kind = OperandKind::kSpecial;
    if (in_.peek().kind == TokenKind::kModifier) {  // .x of %tid.x
      const Token axis = in_.next();
      operand.name = {token.begin, static_cast<size_t>(axis.begin - token.begin) + 1 + axis.text.size()};
    }
  } else {
    operand.kind = OperandKind::kSymbol;
  }
  return operand;
}

}  // namespace isobit::ptx
