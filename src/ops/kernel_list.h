// All rows of all operators, in the order of `isobit list`.
#pragma once

#include <span>

#include "core/kernel_table.h"

namespace isobit {

// Row `index` of all tables, or nullptr past the end.
const KernelInfo* kernel_info(int index);

}  // namespace isobit
