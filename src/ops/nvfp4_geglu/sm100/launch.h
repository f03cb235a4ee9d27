// nvfp4_geglu with the block-scaled matrix instructions, compute capability 10.0, 10.3 and 11.0: rows of the table of
// kernels.
#pragma once

#include "core/kernel_table.h"
#include "ops/nvfp4_geglu/contract.h"

namespace isobit::nvfp4_geglu::sm100 {

// kBlocks: 1, or 2 blocks in a cluster that share the rows of x.
template <int kBlocks>
Status takes(const Params& params, const DeviceProperties& device);
template <int kBlocks>
Status run(const Params& params, void* stream);
WorkspaceBytes workspace(const Params& params);  // none

}  // namespace isobit::nvfp4_geglu::sm100
