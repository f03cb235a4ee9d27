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
  // A pass that saves does not know whether the backward pass will want q; a query does not know which pass it is for.
  forward.wants_entropy = forward.wants_entropy || p.wants_entropy_gradient || p.purpose != BackwardPurpose::kWhole;
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

// A node of the segment tree and where its sum goes.
struct SummedNode {
  int64_t first;     // segment
  int64_t segments;  // a power of two
  GradientOutput to;
};

class SummedNodes {
 public:
  void push(const SummedNode& node) { node_[count_++] = node; }
  const SummedNode* begin() const { return node_; }
  const SummedNode* end() const { return node_ + count_; }

 private:
  SummedNode node_[kSegments];
  int count_ = 0;
};

// What the call sums over ids: the whole tree into d_hidden, or a shard's nodes into its part, ascending.
SummedNodes summed_nodes(const BackwardParams& p) {
  SummedNodes nodes;
  if (p.d_hidden) nodes.push({0, kSegments, p.d_hidden});
  if (p.part == nullptr) return nodes;
  const SegmentRange segments = segment_range(p.forward.shard_ids(), p.forward.vocab);
  float* to = p.part;
  for (int64_t at = segments.begin; at < segments.end; to += p.forward.rows * p.forward.width) {
    const int64_t count = int64_t{1} << largest_segment_node(at, segments.end).level;
    nodes.push({at, count, {to, ISOBIT_FP32, p.forward.width}});
    at += count;
  }
  return nodes;
}

Status fill_hidden(const BackwardParams& p, void* stream) {
  for (const SummedNode& node : summed_nodes(p)) {
    if (Status s = launch_fill_rows(p, node.to, stream); !s.ok()) return s;
  }
  return Status();
}

// One chunk of rows and ids: dz, and what is made of it. `first_id` counts from row 0 of weight.
Status run_chunk(const BackwardJob& job, const Sweep& sweep, const BackwardKernels& kernels, void* stream) {
  if (Status s = kernels.logits(job, stream); !s.ok()) return s;
  if (Status s = launch_targets(job, stream); !s.ok()) return s;
  if (sweep.hidden) {
    if (Status s = kernels.hidden(job, stream); !s.ok()) return s;
  }
  return sweep.weight && job.first_id < job.p.forward.count ? kernels.weight(job, sweep.hidden, stream) : Status();
}

// The chunks of a node's segments.
Status run_node(BackwardJob job, const Sweep& sweep, const SummedNode& node, const ChunkArrays& chunk,
                const BackwardKernels& kernels, void* stream) {
  job.slices = static_cast<int32_t>(std::min<int64_t>(sweep.slices, node.segments));
  job.p.d_hidden = node.to;
  const auto chunks = static_cast<int>(node.segments / job.slices);
  for (int i = 0; i < chunks; ++i) {
    job.first_id = (node.first + int64_t{i} * job.slices) * sweep.slice_ids - job.p.forward.first_id;
    if (Status s = run_chunk(job, sweep, kernels, stream); !s.ok()) return s;
    if (Status s = launch_add_segments(job, chunk.level, i, chunks, stream); !s.ok()) return s;
  }
  return Status();
}

// The chunks of one sweep: rows outside, so that pieces of d_weight ascend; ids inside, so that segments do.
Status run_sweep(BackwardJob job, const Sweep& sweep, const BackwardKernels& kernels, Arena arena, void* stream) {
  const ChunkArrays chunk = lay_out_chunk(job.p, sweep, &arena);
  const SummedNodes nodes = summed_nodes(job.p);
  job.slices = sweep.slices;
  job.slice_ids = sweep.slice_ids;
  job.slice_pitch = sweep.slice_pitch;
  job.dz = chunk.dz;
  job.partial = chunk.partial;
  for (int64_t first_row = 0; first_row < job.p.forward.rows; first_row += sweep.rows) {
    job.first_row = first_row;
    job.rows = static_cast<int32_t>(std::min(sweep.rows, job.p.forward.rows - first_row));
    if (sweep.hidden) {
      for (const SummedNode& node : nodes) {
        if (Status s = run_node(job, sweep, node, chunk, kernels, stream); !s.ok()) return s;
      }
      continue;
    }
    for (job.first_id = 0; job.first_id < job.p.forward.count; job.first_id += sweep.slice_ids) {
      if (Status s = run_chunk(job, sweep, kernels, stream); !s.ok()) return s;
    }
  }
  return Status();
}

Status run_save_merge(const BackwardParams& p, ChooseProducer choose, void* stream) {
  Params forward = p.forward;
  forward.saves = true;
  forward.saved = p.saved;
  return forward.rows == 0 ? Status() : run(forward, choose, stream);
}

// In ascending order, with the additions of the tree that each completes.
Status run_merge_parts(const BackwardParams& p, void* stream) {
  PartNodes list{};
  const int64_t vocab = p.forward.vocab;
  for (int32_t i = 0; i < p.part_count; ++i) {
    const SegmentRange segments = segment_range(p.parts[i].ids, vocab);
    const float* sums = static_cast<const float*>(p.parts[i].data);
    for (int64_t at = segments.begin; at < segments.end; sums += p.forward.rows * p.forward.width) {
      NodeId node = largest_segment_node(at, segments.end);
      at = (node.index + 1) << node.level;
      PartNode& to = list.node[list.count++];
      to.sums = sums;
      for (; node.level + 1 < kSegmentLevels; node = {node.level + 1, node.index / 2}) {
        if (node.index % 2 != 0) {
          ++to.additions;
        } else if (segment_node_ids({node.level, node.index + 1}, vocab).size() > 0) {
          break;
        }
      }
    }
  }
  return launch_merge_parts(p, list, stream);
}

}  // namespace

WorkspaceBytes backward_workspace(const BackwardParams& params, const BackwardKernels& kernels) {
  BackwardParams p = params;
  // A query without d_hidden may stand for a shard call with a part.
  if (p.purpose == BackwardPurpose::kQuery && segment_range(p.forward.shard_ids(), p.forward.vocab).whole) {
    p.wants_hidden = true;
  }
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
  if (p.purpose == BackwardPurpose::kSaveMerge) return run_save_merge(p, choose, stream);
  if (p.purpose == BackwardPurpose::kMerge) return run_merge_parts(p, stream);
  if (p.purpose == BackwardPurpose::kSave) {
    return forward.rows == 0
               ? Status()
               : run(saving_params(p, p.saved, forward.workspace, forward.workspace_bytes), choose, stream);
  }
  if (Status s = launch_clear_ids(p, stream); !s.ok() || forward.rows == 0) return s;
  if (Status s = fill_hidden(p, stream); !s.ok()) return s;
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
