// The table of kernels of nvfp4_linear.
#pragma once

#include "core/kernel_table.h"

namespace isobit::nvfp4_linear {

// Row `index` of the table, or nullptr past its end.
const KernelInfo* kernel_at(int index);

}  // namespace isobit::nvfp4_linear
