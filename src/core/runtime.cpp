#include "core/runtime.h"

namespace isobit {
namespace {

thread_local Runtime* replacement_runtime = nullptr;

}  // namespace

Runtime& runtime() { return replacement_runtime != nullptr ? *replacement_runtime : default_runtime(); }

ScopedRuntime::ScopedRuntime(Runtime* replacement) : previous_(replacement_runtime) {
  replacement_runtime = replacement;
}

ScopedRuntime::~ScopedRuntime() { replacement_runtime = previous_; }

}  // namespace isobit
