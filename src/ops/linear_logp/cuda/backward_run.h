// The launch sequence of a backward call, the same for every architecture:
//   [forward pass that saves] -> rows -> per chunk: logits to dz -> d_hidden of segments -> their tree; d_weight
//
// Together: a chunk is up to 8,192 valid rows against whole segments; every dz is made once. Where that does not fit
// the workspace, or would round d_weight in between, the two gradients are made apart, each with chunks that suit it.
#pragma once

#include "core/kernel_table.h"
#include "ops/linear_logp/cuda/backward_job.h"
#include "ops/linear_logp/cuda/run.h"

namespace isobit::linear_logp::cuda {

// An architecture's products for a chunk.
struct BackwardKernels {
  Status (*logits)(const BackwardJob& job, void* stream);  // all of job.dz
  Status (*hidden)(const BackwardJob& job, void* stream);  // job.partial from job.dz
  // d_weight and d_bias of the chunk's ids, from job.dz. May run beside `hidden` if that is the launch before, but ends
  // after it.
  Status (*weight)(const BackwardJob& job, bool follows_hidden, void* stream);
  size_t (*scratch_bytes)(const BackwardParams& p);  // for sums of several pieces of rows, on p's device
};

WorkspaceBytes backward_workspace(const BackwardParams& p, const BackwardKernels& kernels);

// Every purpose but queries; `choose` is the architecture's forward pass.
Status run_backward(const BackwardParams& p, const BackwardKernels& kernels, ChooseProducer choose, void* stream);

}  // namespace isobit::linear_logp::cuda
