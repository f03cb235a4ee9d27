// Launches of the kernels that all architectures share.
#pragma once

#include "core/status.h"
#include "ops/linear_logp/cuda/job.h"
#include "ops/linear_logp/cuda/state.h"

namespace isobit::linear_logp::cuda {

// Logits of the targets of job.p that the range holds, +0 for the others, into job.target_logit.
Status launch_gather(const Job& job, void* stream);

// For a call that saves leads: the leads before the big product, and after it the slots that hold them, without them.
Status launch_leads(const Job& job, void* stream);
Status launch_others(const Job& job, void* stream);

// Outputs of job.p from the slots. The kernel before it on the stream must have called launch_dependents().
Status launch_merge(const Job& job, void* stream);

// Top lists of job.p from job.top, which the big product and the merge have written.
Status launch_top(const Job& job, void* stream);

// The complete nodes of job.parts from the slots.
Status launch_publish(const Job& job, const NodeOutput& output, void* stream);

// Outputs of p from the states of all shards.
Status launch_merge_states(const Params& p, const ShardList& list, void* stream);

}  // namespace isobit::linear_logp::cuda
