#include "ptx/decode/module.h"

#include <cstring>

#include "ptx/decode/decoder.h"

namespace isobit::ptx {
namespace {

std::unique_ptr<Symbol> make_symbol(const Variable& v, bool writable) {
  if (v.external) throw ParseFailure{{0, "external variable " + v.name + " has no definition"}};
  auto symbol = std::make_unique<Symbol>();
  symbol->name = v.name;
  symbol->size = v.bytes;
  symbol->writable = writable;
  symbol->bytes.assign(v.bytes + v.alignment, 0);
  const uint64_t start = reinterpret_cast<uint64_t>(symbol->bytes.data());
  symbol->data = symbol->bytes.data() + (v.alignment - start % v.alignment) % v.alignment;
  if (!v.initial.empty()) std::memcpy(symbol->data, v.initial.data(), v.initial.size());
  return symbol;
}

}  // namespace

std::variant<Module, Error> Module::parse(std::string_view text) {
  Module module;
  module.text_ = std::make_unique<std::string>(text);
  try {
    const ModuleSyntax syntax = parse_syntax(*module.text_);
    module.target_ = syntax.target;
    for (const Variable& v : syntax.global) module.symbols_.push_back(make_symbol(v, true));
    for (const Variable& v : syntax.constant) module.symbols_.push_back(make_symbol(v, false));
    for (const FunctionSyntax& f : syntax.functions) {
      module.kernels_.push_back(decode_kernel(f, syntax.shared, module.symbols_));
    }
  } catch (const ParseFailure& failure) {
    return failure.error;
  }
  return module;
}

const Kernel* Module::find(std::string_view name) const {
  for (const Kernel& k : kernels_) {
    if (k.name == name) return &k;
  }
  return nullptr;
}

Symbol* Module::find_symbol(std::string_view name) {
  for (const auto& s : symbols_) {
    if (s->name == name) return s.get();
  }
  return nullptr;
}

}  // namespace isobit::ptx
