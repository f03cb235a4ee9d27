#include "ops/linear_logp/cuda/backward_run.h"

#include <algorithm>

#include "ops/linear_logp/cuda/backward_launch.h"
#include "ops/linear_logp/cuda/backward_plan.h"
#include "ops/linear_logp/cuda/kernels.h"

namespace isobit::linear_logp::cuda {
namespace {

constexpr size_t kRecommendedLimit = size_t{1} << 30;

// The forward pass of the call: what it writes and what it keeps for the backward pass.
Params saving_params(const BackwardParams& p, void* saved, void* workspace, size_t bytes) {
  Params forward = p.forward;
  forward.purpose = Purpose::kWhole;
  forward.wants_entropy = forward.wants_entropy || p.wants_entropy_gradient;
  forward.saves = true;
  forward.finds_lead = !p.subtract_p;
  forward.saved = saved;
  forward.workspace = workspace;
  forward.workspace_bytes = bytes;
  return forward;
}

// Only sums of several pieces of rows need it.
size_t scratch_of(const BackwardParams& p, const BackwardKernels& kernels) {
  return p.forward.rows > kPiece && (p.wants_weight || p.wants_bias) ? kernels.scratch_bytes(p) : 0;
}

// The chunks of one sweep: rows outside, so that pieces of d_weight ascend; ids inside, so that segments do.
Status run_sweep(BackwardJob job, const Sweep& sweep, const BackwardKernels& kernels, Arena arena, void* stream) {
  const ChunkArrays chunk = lay_out_chunk(job.p, sweep, &arena);
  const int64_t ids = int64_t{sweep.slices} * sweep.slice_ids;
  const int64_t chunks = sweep.hidden ? kSegments / sweep.slices : (job.p.forward.count + ids - 1) / ids;
  job.slices = sweep.slices;
  job.slice_ids = sweep.slice_ids;
  job.slice_pitch = sweep.slice_pitch;
  job.dz = chunk.dz;
  job.partial = chunk.partial;
  int64_t first_row = 0;
  do {
    job.first_row = first_row;
    job.rows = static_cast<int32_t>(std::min(sweep.rows, job.p.forward.rows - first_row));
    for (int64_t i = 0; i < chunks; ++i) {
      job.first_id = i * ids;
      if (Status s = kernels.logits(job, stream); !s.ok()) return s;
      if (Status s = launch_targets(job, stream); !s.ok()) return s;
      if (sweep.hidden) {
        if (Status s = kernels.hidden(job, stream); !s.ok()) return s;
        if (Status s = launch_add_segments(job, chunk.level, static_cast<int>(i), static_cast<int>(chunks), stream);
            !s.ok()) {
          return s;
        }
      }
      if (sweep.weight && job.first_id < job.p.forward.count) {
        if (Status s = kernels.weight(job, stream); !s.ok()) return s;
      }
    }
    first_row += sweep.rows;
  } while (first_row < job.p.forward.rows);
  return Status();
}

}  // namespace

WorkspaceBytes backward_workspace(const BackwardParams& p, const BackwardKernels& kernels) {
  const WorkspaceBytes saving = workspace(saving_params(p, nullptr, nullptr, 0));
  if (p.purpose == BackwardPurpose::kSave) return saving;
  const size_t scratch = scratch_of(p, kernels);
  const size_t least = plan_bytes(p, smallest_plan(p), scratch);
  const BackwardPlan plan = choose_plan(p, scratch, std::max(least, kRecommendedLimit));
  Arena call(nullptr);
  lay_out_call(p, scratch, &call);
  const size_t minimum = std::max(least, call.used() + saving.minimum);
  const size_t fast = std::max(plan_bytes(p, plan, scratch), call.used() + saving.recommended);
  return {minimum, std::max(minimum, std::min(fast, std::max(minimum, kRecommendedLimit)))};
}

Status run_backward(const BackwardParams& p, const BackwardKernels& kernels, ChooseProducer choose, void* stream) {
  const Params& forward = p.forward;
  if (p.purpose == BackwardPurpose::kSave) {
    return forward.rows == 0
               ? Status()
               : run(saving_params(p, p.saved, forward.workspace, forward.workspace_bytes), choose, stream);
  }
  if (Status s = launch_fill(p, stream); !s.ok() || forward.rows == 0) return s;
  const size_t scratch = scratch_of(p, kernels);
  const BackwardPlan plan = choose_plan(p, scratch, forward.workspace_bytes);
  Arena arena(forward.workspace);
  const CallArrays call = lay_out_call(p, scratch, &arena);
  void* const saved = p.saved != nullptr ? p.saved : call.saved;
  if (p.saved == nullptr) {
    const size_t bytes = forward.workspace_bytes - arena.used();
    const Params saving = saving_params(p, saved, arena.take<unsigned char>(0), bytes);
    if (Status s = run(saving, choose, stream); !s.ok()) return s;
  }

  BackwardJob job{};
  job.p = p;
  job.saved = saved_arrays(saved, forward.rows);
  job.valid = call.valid;
  job.row_of = call.row_of;
  job.gradient = call.gradient;
  job.hidden = call.hidden;
  job.hidden_stride = hidden_stride(p);
  job.target_dot = call.target_dot;
  job.weight_columns = static_cast<int32_t>(forward.width + (p.wants_bias ? 1 : 0));
  job.partial_stride = partial_stride(p);
  job.scratch = call.scratch;
  if (Status s = launch_rows(job, {call.valid, call.row_of, call.gradient, call.hidden}, stream); !s.ok()) return s;
  for (int i = 0; i < plan.count; ++i) {
    if (Status s = run_sweep(job, plan.sweeps[i], kernels, arena, stream); !s.ok()) return s;
  }
  return Status();
}

}  // namespace isobit::linear_logp::cuda
