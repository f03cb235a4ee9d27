// The table of kernels of nvfp4_geglu.
#pragma once

#include "core/kernel_table.h"

namespace isobit::nvfp4_geglu {

// Row `index` of the table, or nullptr past its end.
const KernelInfo* kernel_at(int index);

}  // namespace isobit::nvfp4_geglu
