// Names of the special registers whose value is fixed for a thread.
#pragma once
#include <optional>
#include <string_view>

#include "ptx/decode/module.h"

namespace isobit::ptx {

std::optional<SpecialRegister> find_special_register(std::string_view name);

}  // namespace isobit::ptx
