// Decodes a function's statements in order.
#include <algorithm>

#include "ptx/decode/decoder.h"

namespace isobit::ptx {

Kernel decode_kernel(const FunctionSyntax& syntax, const std::vector<Variable>& module_shared,
                     const std::vector<std::unique_ptr<Symbol>>& symbols) {
  Kernel kernel;
  kernel.name = syntax.name;
  kernel.line = syntax.line;
  kernel.parameters = syntax.parameters;
  kernel.parameter_bytes = syntax.parameter_bytes;
  std::copy_n(syntax.max_threads, 3, kernel.max_threads);
  std::copy_n(syntax.required_threads, 3, kernel.required_threads);
  std::copy_n(syntax.cluster, 3, kernel.cluster);
  KernelScope scope(syntax, module_shared, symbols, kernel);
  kernel.code.reserve(syntax.statements.size() + 1);
  for (const Statement& statement : syntax.statements) kernel.code.push_back(Decoder(statement, scope).decode());
  // A body may end without ret, and a label may stand behind the last statement.
  Instruction end;
  end.flow = Flow::kExit;
  end.line = syntax.statements.empty() ? syntax.line : syntax.statements.back().line;
  end.text = "end of the kernel";
  kernel.code.push_back(std::move(end));
  return kernel;
}

}  // namespace isobit::ptx
