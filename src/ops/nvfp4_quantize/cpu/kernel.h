// The CPU backend: one row of the table of kernels.
#pragma once

#include "core/kernel_table.h"
#include "ops/nvfp4_quantize/contract.h"

namespace isobit::nvfp4_quantize::cpu {

Status takes(const Params& params, const DeviceProperties& device);
Status run(const Params& params, void* stream);

}  // namespace isobit::nvfp4_quantize::cpu
