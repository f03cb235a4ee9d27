// The exact backend on the CPU: one row of the table of kernels.
#pragma once

#include "core/kernel_table.h"
#include "ops/nvfp4_geglu/contract.h"

namespace isobit::nvfp4_geglu::cpu {

Status takes(const Params& params, const DeviceProperties& device);
WorkspaceBytes workspace(const Params& params);
Status run(const Params& params, void* stream);

}  // namespace isobit::nvfp4_geglu::cpu
