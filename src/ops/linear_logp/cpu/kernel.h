// The exact backend on the CPU: one row of the table of kernels.
#pragma once

#include "core/kernel_table.h"
#include "ops/linear_logp/contract.h"

namespace isobit::linear_logp::cpu {

Status takes(const Params& params, const DeviceProperties& device);
WorkspaceBytes workspace(const Params& params);

// Whole and shard calls (forward.cpp), merges (merge.cpp). Threads take whole spans of 1,024 ids and blocks of rows, so
// neither their number nor the workspace's size touches a bit.
Status run(const Params& params, void* stream);
void run_forward(const Params& params);
void run_merge(const Params& params);

}  // namespace isobit::linear_logp::cpu
