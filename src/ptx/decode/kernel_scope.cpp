// Rows for registers and constants, addresses for variables.
#include <algorithm>

#include "ptx/decode/decoder.h"

namespace isobit::ptx {
namespace {

// The first bytes of a CTA's shared window belong to the system from SM90 on; variables start behind them.
constexpr uint32_t kSharedStart = 1024;

uint64_t align_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

}  // namespace

KernelScope::KernelScope(const FunctionSyntax& syntax, const std::vector<Variable>& module_shared,
                         const std::vector<std::unique_ptr<Symbol>>& symbols, Kernel& kernel)
    : syntax_(syntax), kernel_(kernel) {
  for (const Type type : syntax.registers) {
    slots_.push_back(type == Type::kPred ? kernel.predicates++ : rows(std::max(1, bits_of(type) / 32)));
  }
  kernel.static_shared = kSharedStart;
  place_shared(module_shared);
  place_shared(syntax.shared);
  place_local();
  for (const auto& s : symbols) {
    places_[s->name] = {s->writable ? Space::kGlobal : Space::kConst, reinterpret_cast<uint64_t>(s->data), false};
  }
  for (const Parameter& p : syntax.parameters) places_[p.name] = {Space::kParam, p.offset, false};
}

Slot KernelScope::rows(int count) {
  const Slot first = kernel_.words;
  kernel_.words += count;
  return first;
}

void KernelScope::place_shared(const std::vector<Variable>& variables) {
  for (const Variable& v : variables) {
    if (v.external) {
      kernel_.dynamic_alignment = std::max(kernel_.dynamic_alignment, v.alignment);
      places_[v.name] = {Space::kShared, 0, true};
      continue;
    }
    kernel_.static_shared = static_cast<uint32_t>(align_up(kernel_.static_shared, v.alignment));
    places_[v.name] = {Space::kShared, kernel_.static_shared, false};
    kernel_.static_shared += static_cast<uint32_t>(v.bytes);
  }
}

void KernelScope::place_local() {
  for (const Variable& v : syntax_.local) {
    kernel_.local_bytes = static_cast<uint32_t>(align_up(kernel_.local_bytes, std::max(16u, v.alignment)));
    places_[v.name] = {Space::kLocal, kernel_.local_bytes, false};
    kernel_.local_bytes += static_cast<uint32_t>(v.bytes);
  }
}

Slot KernelScope::constant(uint64_t value, int bits) {
  const bool wide = bits > 32;
  if (!wide) value &= bits == 8 ? 0xFFu : bits == 16 ? 0xFFFFu : ~0u;
  const auto [it, inserted] = constants_.emplace(std::pair{value, wide ? 64 : 32}, kernel_.words);
  if (inserted) {
    rows(wide ? 2 : 1);
    kernel_.constants.push_back({it->second, value, wide});
  }
  return it->second;
}

Slot KernelScope::constant_predicate(bool value) {
  Slot& slot = predicate_[value];
  if (slot == kNoSlot) {
    slot = kernel_.predicates++;
    kernel_.constant_predicates.push_back({slot, value ? kAllLanes : 0u, false});
  }
  return slot;
}

Slot KernelScope::special(SpecialRegister which) {
  const auto [it, inserted] = special_rows_.emplace(which, kernel_.words);
  if (inserted) kernel_.special_rows.push_back({rows(1), which});
  return it->second;
}

Slot KernelScope::scratch() {
  if (scratch_ == kNoSlot) scratch_ = rows(4);
  return scratch_;
}

Slot KernelScope::scratch_predicate() {
  if (scratch_predicate_ == kNoSlot) scratch_predicate_ = kernel_.predicates++;
  return scratch_predicate_;
}

std::optional<Slot> KernelScope::symbol(std::string_view name, int bits) {
  const auto place = places_.find(name);
  if (place == places_.end()) return std::nullopt;
  const Place& p = place->second;
  if (p.space == Space::kGlobal || p.space == Space::kConst || p.space == Space::kLocal) return constant(p.value, bits);
  const auto [it, inserted] = symbol_rows_.emplace(std::pair{name, bits}, kernel_.words);
  if (!inserted) return it->second;
  rows(bits > 32 ? 2 : 1);
  if (p.space == Space::kShared) {
    kernel_.shared_addresses.push_back({it->second, static_cast<uint32_t>(p.value), p.dynamic, bits > 32});
  } else {
    kernel_.parameter_addresses.push_back({it->second, static_cast<uint32_t>(p.value)});
  }
  return it->second;
}

std::optional<Space> KernelScope::space_of(std::string_view name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? std::nullopt : std::optional(place->second.space);
}

std::optional<uint32_t> KernelScope::parameter_offset(std::string_view name) const {
  const auto place = places_.find(name);
  if (place == places_.end() || place->second.space != Space::kParam) return std::nullopt;
  return static_cast<uint32_t>(place->second.value);
}

std::optional<size_t> KernelScope::label(std::string_view name, int scope) const {
  for (int s = scope; s >= 0; s = syntax_.scopes[static_cast<size_t>(s)].parent) {
    const auto& labels = syntax_.scopes[static_cast<size_t>(s)].labels;
    if (const auto it = labels.find(name); it != labels.end()) return it->second;
  }
  return std::nullopt;
}

const std::vector<std::string_view>* KernelScope::branch_targets(std::string_view name, int scope) const {
  for (int s = scope; s >= 0; s = syntax_.scopes[static_cast<size_t>(s)].parent) {
    const auto& tables = syntax_.scopes[static_cast<size_t>(s)].branch_targets;
    if (const auto it = tables.find(name); it != tables.end()) return &it->second;
  }
  return nullptr;
}

}  // namespace isobit::ptx
