// The table of kernels of linear_logp.
#pragma once

#include "core/kernel_table.h"

namespace isobit::linear_logp {

// Row `index` of the table, or nullptr past its end; likewise of the backward pass (backward_dispatch.cpp).
const KernelInfo* kernel_at(int index);
const KernelInfo* backward_kernel_at(int index);

}  // namespace isobit::linear_logp
