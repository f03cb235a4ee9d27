// The exact backend's backward pass on the CPU: one row of its table of kernels.
#pragma once

#include "core/kernel_table.h"
#include "ops/linear_logp/backward_contract.h"

namespace isobit::linear_logp::cpu {

Status takes_backward(const BackwardParams& params, const DeviceProperties& device);
WorkspaceBytes backward_workspace(const BackwardParams& params);
Status run_backward(const BackwardParams& params, void* stream);

}  // namespace isobit::linear_logp::cpu
