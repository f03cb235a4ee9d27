// Parses a function body: scopes, declarations, labels, instructions.
#pragma once
#include "ptx/syntax/syntax.h"
#include "ptx/syntax/token_stream.h"

namespace isobit::ptx {

// `.align 4 .b8 name[16] = {...}`; the state space and the closing ';' belong to the caller.
Variable parse_variable(TokenStream& in, bool external);

class BodyParser {
 public:
  BodyParser(TokenStream& in, std::string_view source, FunctionSyntax& function)
      : in_(in), source_(source), function_(function) {}

  void run();  // from '{' to after the matching '}'

 private:
  void parse_item();
  void parse_directive();
  void parse_registers();
  void parse_label();
  void parse_instruction();
  void parse_operands(Statement& statement);
  Operand parse_operand();
  Operand parse_simple_operand();
  Operand parse_address();
  Operand parse_vector();
  Operand parse_number();
  Operand parse_name();
  int32_t find_register(std::string_view name) const;

  TokenStream& in_;
  std::string_view source_;
  FunctionSyntax& function_;
  int scope_ = -1;
};

}  // namespace isobit::ptx
