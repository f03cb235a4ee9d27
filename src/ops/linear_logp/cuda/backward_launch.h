// Launches of the backward pass's kernels that all architectures share.
#pragma once

#include "core/status.h"
#include "ops/linear_logp/cuda/backward_job.h"

namespace isobit::linear_logp::cuda {

inline constexpr int32_t kMostSlices = 8;  // of a chunk, a power of two; more gains nothing

// Where the rows' numbers, coefficients and hidden states go: what BackwardJob then reads.
struct RowArrays {
  int32_t* valid;
  int32_t* row_of;
  GradientRow* gradient;
  uint16_t* hidden;
};

// Everything of the call that comes before the first product; job.saved has been written.
Status launch_rows(const BackwardJob& job, const RowArrays& rows, void* stream);

// What no product writes: d_hidden (to `to`) of rows that are not valid; gradients of ids that do not exist, or of all
// ids if there is no row.
Status launch_fill_rows(const BackwardParams& p, const GradientOutput& to, void* stream);
Status launch_clear_ids(const BackwardParams& p, void* stream);

// dz of the targets among the chunk's ids, after its logits.
Status launch_targets(const BackwardJob& job, void* stream);

// Adds the slices of chunk number `chunk` of `chunks` (a power of two) to the tree whose waiting
// nodes are in `levels`, and after the last writes job.p.d_hidden.
Status launch_add_segments(const BackwardJob& job, float* const* levels, int chunk, int chunks, void* stream);

// The nodes of all parts, [N, H] each, ascending.
struct PartNode {
  const float* sums;
  int32_t additions;  // of the tree that can be done once this one is there
};
struct PartNodes {
  PartNode node[kSegments];
  int32_t count;
};

// d_hidden from the parts of all shards.
Status launch_merge_parts(const BackwardParams& p, const PartNodes& list, void* stream);

}  // namespace isobit::linear_logp::cuda
