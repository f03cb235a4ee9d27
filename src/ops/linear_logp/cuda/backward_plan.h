// How a backward call is cut into chunks so that it fits a workspace, and where things lie in it. Host code without a
// GPU, tested as such. No result depends on the plan: chunks of rows are pieces of d_weight or have it to themselves,
// chunks of ids are segments of d_hidden or have it to themselves.
#pragma once

#include "ops/linear_logp/backward_contract.h"
#include "ops/linear_logp/cuda/arena.h"
#include "ops/linear_logp/saved.h"

namespace isobit::linear_logp::cuda {

// Chunks of rows start at multiples of it, and rows of dz and hidden are padded to it.
inline constexpr int64_t kRowPadding = 128;
// Columns of a block of dz (backward_job.h): 128 bytes, what a row of a tile in shared memory holds.
inline constexpr int32_t kDzColumns = 64;
inline constexpr int64_t kDzBlock = kRowPadding * kDzColumns;

// A sweep over all valid rows and all ids that makes one gradient or both.
struct Sweep {
  bool hidden;
  bool weight;        // d_bias as well
  int64_t rows;       // of a chunk, a multiple of 128 or all
  int32_t slices;     // of a chunk: segments if `hidden`, else 1
  int32_t slice_ids;  // of a slice
  int32_t slice_pitch;
};

struct BackwardPlan {
  Sweep sweeps[2];
  int count;  // of sweeps; 0: the workspace is too small
};

// Workspace of the whole call.
struct CallArrays {
  int32_t* valid;
  int32_t* row_of;
  GradientRow* gradient;
  uint16_t* hidden;
  float* target_dot;
  void* scratch;
  void* saved;  // unless the caller has it
};

// Workspace of one chunk.
struct ChunkArrays {
  uint16_t* dz;
  float* partial;
  float* level[4];
};

int64_t hidden_stride(const BackwardParams& p);
int64_t partial_stride(const BackwardParams& p);

CallArrays lay_out_call(const BackwardParams& p, size_t scratch_bytes, Arena* arena);
ChunkArrays lay_out_chunk(const BackwardParams& p, const Sweep& sweep, Arena* arena);

// Bytes of a plan's largest sweep, those of the call included.
size_t plan_bytes(const BackwardParams& p, const BackwardPlan& plan, size_t scratch_bytes);

// The fastest plan that fits; the smallest one there is.
BackwardPlan choose_plan(const BackwardParams& p, size_t scratch_bytes, size_t workspace_bytes);
BackwardPlan smallest_plan(const BackwardParams& p);

}  // namespace isobit::linear_logp::cuda
