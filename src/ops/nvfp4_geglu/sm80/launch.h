// nvfp4_geglu with mma.sync, compute capability 8.0 and newer: rows of the table of kernels.
#pragma once

#include "core/kernel_table.h"
#include "ops/nvfp4_geglu/contract.h"

namespace isobit::nvfp4_geglu::sm80 {

Status takes(const Params& params, const DeviceProperties& device);
WorkspaceBytes workspace(const Params& params);  // none
Status run(const Params& params, void* stream);

}  // namespace isobit::nvfp4_geglu::sm80
