// Rows of the table of kernels that run on a GPU. Without CUDA in the build they refuse.
#pragma once

#include "core/kernel_table.h"
#include "ops/linear_logp/backward_contract.h"

namespace isobit::linear_logp::cuda {

// WGMMA and the copy engine: SM90 alone.
Status takes_sm90(const Params& p, const DeviceProperties& device);
Status run_sm90(const Params& p, void* stream);

// mma.sync: any shape, stride and alignment, SM80 and newer.
Status takes_sm80(const Params& p, const DeviceProperties& device);
Status run_sm80(const Params& p, void* stream);

// The same for every architecture: what the one that needs most slots needs.
WorkspaceBytes workspace(const Params& p);

// The backward pass.
Status takes_backward_sm80(const BackwardParams& p, const DeviceProperties& device);
Status run_backward_sm80(const BackwardParams& p, void* stream);
WorkspaceBytes backward_workspace_sm80(const BackwardParams& p);
Status takes_backward_sm90(const BackwardParams& p, const DeviceProperties& device);
Status run_backward_sm90(const BackwardParams& p, void* stream);
WorkspaceBytes backward_workspace_sm90(const BackwardParams& p);

}  // namespace isobit::linear_logp::cuda
