// nvfp4_geglu with WGMMA, compute capability 9.0: the first row of the table of kernels.
#pragma once

#include "core/kernel_table.h"
#include "ops/nvfp4_geglu/contract.h"

namespace isobit::nvfp4_geglu::sm90 {

Status takes(const Params& params, const DeviceProperties& device);
WorkspaceBytes workspace(const Params& params);  // x in bf16, for all rows or for some at a time
Status run(const Params& params, void* stream);

}  // namespace isobit::nvfp4_geglu::sm90
