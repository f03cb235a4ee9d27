// Turns one statement into an instruction. Every modifier must be taken and every operand asked for: what is left over
// is an error.
#pragma once
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ptx/decode/module.h"
#include "ptx/syntax/syntax.h"

namespace isobit::ptx {

// Names visible to a kernel's code and the rows given to its registers and constants.
class KernelScope {
 public:
  KernelScope(const FunctionSyntax& syntax, const std::vector<Variable>& module_shared,
              const std::vector<std::unique_ptr<Symbol>>& symbols, Kernel& kernel);

  Slot row_of(int32_t reg) const { return slots_[static_cast<size_t>(reg)]; }
  Slot constant(uint64_t value, int bits);
  Slot constant_predicate(bool value);
  Slot special(SpecialRegister which);
  Slot scratch();  // four rows for results nobody wants
  Slot scratch_predicate();
  // The row holding a symbol's address; `bits` is what the instruction wants. Empty for an unknown name.
  std::optional<Slot> symbol(std::string_view name, int bits);
  std::optional<Space> space_of(std::string_view name) const;
  std::optional<uint32_t> parameter_offset(std::string_view name) const;
  std::optional<size_t> label(std::string_view name, int scope) const;
  const std::vector<std::string_view>* branch_targets(std::string_view name, int scope) const;
  Kernel& kernel() { return kernel_; }

 private:
  struct Place {
    Space space;
    uint64_t value;
    bool dynamic;
  };
  void place_shared(const std::vector<Variable>& variables);
  void place_local();
  Slot rows(int count);

  const FunctionSyntax& syntax_;
  Kernel& kernel_;
  std::vector<Slot> slots_;
  std::map<std::string_view, Place> places_;
  std::map<std::pair<uint64_t, int>, Slot> constants_;
  std::map<std::pair<std::string_view, int>, Slot> symbol_rows_;
  std::map<SpecialRegister, Slot> special_rows_;
  Slot scratch_ = kNoSlot, scratch_predicate_ = kNoSlot, predicate_[2] = {kNoSlot, kNoSlot};
};

class Decoder {
 public:
  Decoder(const Statement& statement, KernelScope& scope);

  Instruction decode();

  // Modifiers, in any order.
  bool take(std::string_view modifier);
  void require(std::string_view modifier);
  std::optional<size_t> take_any(std::initializer_list<std::string_view> choices);  // the index of the one present
  size_t require_any(std::initializer_list<std::string_view> choices);
  Type take_type();  // the last modifier that is a type
  std::optional<Type> take_optional_type();
  const std::vector<std::string_view>& left() const { return left_; }
  bool take_prefix(std::string_view prefix, std::string_view& rest);  // `x2` of a modifier, say

  // Operands.
  size_t count() const { return statement_.operands.size(); }
  void expect_count(size_t least, size_t most);
  const Operand& operand(size_t index) const;
  Slot source(size_t index, Type type) { return source(operand(index), type); }
  Slot source(const Operand& operand, Type type);
  Slot destination(size_t index, Type type) { return destination(operand(index), type); }
  Slot destination(const Operand& operand, Type type);
  Slot predicate(size_t index) { return predicate(operand(index)); }
  Slot predicate(const Operand& operand);  // as a source
  Slot predicate_destination(const Operand& operand);
  uint64_t literal(size_t index) const;
  // [base + offset] of operand `index` into a, immediate and wide_address; Space::kGeneric wants 64 bits.
  void address(size_t index, Space space);
  // A bare address inside brackets, with no offset.
  Slot plain_address(const Operand& operand, int bits);
  // Loads and stores may use a register wider than the element.
  Slot loose_register(const Operand& operand, Type type, bool is_destination, bool& wide);
  // A base that names a parameter of this kernel, with its place in the parameter block.
  std::optional<uint32_t> named_parameter(size_t index) const;
  std::string_view opcode() const { return statement_.opcode; }
  const Statement& statement() const { return statement_; }
  KernelScope& scope() { return scope_; }
  Instruction& out() { return out_; }

  [[noreturn]] void fail(const std::string& message) const;

 private:
  Slot register_row(const Operand& operand);
  Slot immediate(const Operand& operand, Type type);
  Slot special_source(const Operand& operand, Type type);
  void check_class(const Operand& operand, Type type) const;

  const Statement& statement_;
  KernelScope& scope_;
  std::vector<std::string_view> left_;
  Instruction out_;
};

using DecodeFunction = void (*)(Decoder&);

// Opcode -> family; null for an opcode the interpreter does not know.
DecodeFunction find_family(std::string_view opcode);

Kernel decode_kernel(const FunctionSyntax& syntax, const std::vector<Variable>& module_shared,
                     const std::vector<std::unique_ptr<Symbol>>& symbols);

}  // namespace isobit::ptx
