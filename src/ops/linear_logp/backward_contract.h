// The backward pass of linear_logp: arguments -> checked parameters.
#pragma once

#include "ops/linear_logp/contract.h"
#include "ops/linear_logp/segments.h"

namespace isobit::linear_logp {

// Frozen: docs/bit-contract.md section 3.6.
inline constexpr const char* kBackwardContract = "linear_logp_backward/sm90-k16-f25/1";

// What a call is going to do. A query does not look at pointers and stands for kWhole, kSave and kShard.
enum class BackwardPurpose { kWhole, kSave, kSaveMerge, kShard, kMerge, kQuery, kShardQuery };

// An upstream gradient of shape [N] or [N, K]; +0 everywhere if data is nullptr.
struct Upstream {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
  ISOBIT_HD explicit operator bool() const { return data != nullptr; }
  ISOBIT_HD float at(int64_t row, int64_t column = 0) const {
    return data == nullptr ? 0.0f : data[row * row_stride + column * column_stride];
  }
};

// A written gradient, bf16 or fp32; data is nullptr if it is not wanted.
struct GradientOutput {
  void* data = nullptr;
  isobit_dtype dtype = ISOBIT_NONE;
  int64_t stride = 0;  // elements from row to row of a matrix, from element to element of d_bias
  explicit operator bool() const { return data != nullptr; }
};

// Checked parameters.
struct BackwardParams {
  BackwardPurpose purpose;
  // Inputs, options, workspace, kernel, threads, device; logp, lse and entropy if the call writes them. In kMerge only
  // rows, width, vocab, threads, kernel and device; in kSaveMerge what a merge of the forward pass has.
  Params forward;
  bool accumulate;

  Upstream d_logp;     // [N, K]
  Upstream d_lse;      // [N]
  Upstream d_entropy;  // [N]
  // What is asked for; a query has no pointers.
  bool wants_entropy_gradient;
  bool wants_hidden;  // in a shard call: a part
  bool wants_weight;
  bool wants_bias;

  GradientOutput d_hidden;  // [N, H]
  GradientOutput d_weight;  // [weight_rows, H]
  GradientOutput d_bias;    // [weight_rows]
  int64_t weight_rows;      // Vw: those from forward.count on are padding

  bool subtract_p;         // no lead in what is saved
  void* saved;             // SavedArrays; nullptr: the call finds out itself. Written by kSave, kSaveMerge.
  float* part;             // [P, N, H], written by a shard call
  const StateView* parts;  // read by a merge: [part_count], host memory, ascending ids, none empty; [P, N, H] each
  int32_t part_count;
};

// The only place where isobit_linear_logp_backward_args are read. `part` is what a shard call writes, `merge` what
// kMerge (parts) or kSaveMerge (states) reads.
Status check_backward(const isobit_linear_logp_backward_args* args, BackwardPurpose purpose, BackwardParams* params,
                      void* part = nullptr, MergeInput* merge = nullptr);

// Bytes of the part of a shard call.
int64_t part_bytes(const BackwardParams& params, IdRange ids);

}  // namespace isobit::linear_logp
