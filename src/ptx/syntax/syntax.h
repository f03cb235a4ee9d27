// The parsed form of a module, before decoding: names are resolved to registers and labels by scope, nothing is
// interpreted yet.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/syntax/types.h"

namespace isobit::ptx {

enum class OperandKind : uint8_t {
  kRegister,
  kInteger,
  kFloat32,
  kFloat64,
  kSymbol,
  kSpecial,
  kAddress,
  kVector,
  kSink
};

struct Operand {
  OperandKind kind = OperandKind::kSink;
  std::string_view name;   // symbol or special register; for a register, its name
  Type type = Type::kB32;  // of a register
  int32_t reg = -1;        // index into FunctionSyntax::registers
  uint64_t bits = 0;       // literal
  int64_t offset = 0;      // address
  bool negated = false;    // !p
  std::vector<Operand>
      parts;  // vector elements; address: base, then bracketed coordinates; destination pair: a|b keeps b here
};

struct Statement {
  int line = 0;
  std::string_view text;
  int32_t guard = -1;  // register index
  bool guard_negated = false;
  std::string_view opcode;
  std::vector<std::string_view> modifiers;
  std::vector<Operand> operands;
  int scope = 0;
};

struct Variable {
  std::string name;
  uint64_t bytes = 0;
  uint32_t alignment = 1;
  std::vector<uint8_t> initial;  // empty: zero
  bool external = false;
};

struct Parameter {
  std::string name;
  uint32_t offset = 0, bytes = 0;
};

struct RegisterRange {
  int32_t first = 0;
  uint32_t count = 0;
};

struct Scope {
  int parent = -1;
  std::map<std::string_view, int32_t> registers;              // name -> index into FunctionSyntax::registers
  std::map<std::string_view, RegisterRange> register_ranges;  // `%r<9>`: stem -> nine registers
  std::map<std::string_view, size_t> labels;                  // name -> statement index
  std::map<std::string_view, std::vector<std::string_view>> branch_targets;
};

struct FunctionSyntax {
  std::string name;
  int line = 0;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  std::vector<Type> registers;
  std::vector<Scope> scopes;
  std::vector<Statement> statements;
  std::vector<Variable> shared, local;
  uint32_t max_threads[3] = {0, 0, 0};       // .maxntid, 0: not given
  uint32_t required_threads[3] = {0, 0, 0};  // .reqntid
  uint32_t cluster[3] = {0, 0, 0};           // .reqnctapercluster
};

struct ModuleSyntax {
  std::string target;
  std::vector<FunctionSyntax> functions;
  std::vector<Variable> global, constant, shared;
};

// Throws ParseFailure. The views in the result point into `source`.
ModuleSyntax parse_syntax(std::string_view source);

}  // namespace isobit::ptx
