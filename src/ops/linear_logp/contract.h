// linear_logp: arguments -> checked parameters. Every rule and limit of the operator is enforced here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"
#include "isobit/linear_logp.h"
#include "ops/linear_logp/tree.h"

namespace isobit::linear_logp {

// Frozen: docs/bit-contract.md section 3, test/frozen.cpp.
inline constexpr const char* kContract = "linear_logp/sm90-k16-f25/1";

inline constexpr int64_t kMaxRows = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMaxVocab = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMaxWidth = int64_t{1} << 24;
inline constexpr int64_t kMaxTargets = 64;
inline constexpr int64_t kMaxTop = 64;
inline constexpr int32_t kMaxShards = 128;
inline constexpr size_t kWorkspaceAlignment = 256;
inline constexpr size_t kStateAlignment = 16;

// A written output of shape [N], [N, K] or [N, T]; data is nullptr if it is not wanted.
template <class T>
struct Output {
  T* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
  explicit operator bool() const { return data != nullptr; }
  T& at(int64_t row, int64_t column = 0) const { return data[row * row_stride + column * column_stride]; }
};

// What a call is going to do; decides which tensors must be there. Queries do not look at pointers: kQuery stands for a
// whole or a shard call, kShardQuery for a shard call. The backward pass of a whole or a shard call wants the inputs of
// a forward call, but no output has to be there.
enum class Purpose { kWhole, kShard, kMerge, kQuery, kShardQuery, kBackward, kBackwardShard };

// A shard's state that a merge reads.
struct StateView {
  IdRange ids;
  const void* data;
};

// Checked parameters; goes to kernels by value.
struct Params {
  Purpose purpose;
  isobit_dtype dtype;  // bf16 or fp16, of hidden and weight
  int64_t rows;        // N
  int64_t width;       // H; 0 in a merge
  int64_t vocab;       // V
  int64_t first_id;    // of weight row 0
  int64_t count;       // ids of this shard that exist: V in a call without shards
  int64_t targets;     // K
  int64_t top;         // T, 0 without a top list

  const void* hidden;     // [N, H]
  int64_t hidden_stride;  // elements from row to row
  const void* weight;     // [count, H]
  int64_t weight_stride;
  const void* bias;  // [count] of bias_dtype, or nullptr
  int64_t bias_stride;
  const void* target;  // [N, K] int32 or int64
  int64_t target_row_stride;
  int64_t target_column_stride;
  const float* temperature;  // [N], or nullptr: temperature_value
  int64_t temperature_stride;
  float temperature_value;
  float softcap;  // 0: none
  isobit_dtype bias_dtype;
  bool target_is_int64;
  bool use_ignore_index;
  // What is asked for; in a shard call the outputs below are null and only these say what the state must hold.
  bool wants_entropy;
  bool wants_rank;
  int64_t ignore_index;

  Output<float> logp;          // [N, K]
  Output<float> lse;           // [N]
  Output<float> entropy;       // [N]
  Output<int32_t> rank;        // [N, K]
  Output<float> target_logit;  // [N, K]; read in a shard call with rank
  Output<int32_t> top_id;      // [N, T]
  Output<float> top_logp;      // [N, T]

  // Set by the backward pass alone: the call leaves a RowRecord of every row in saved_arrays(saved, rows).
  bool saves;
  bool finds_lead;
  void* saved;

  void* state;              // written by a shard call: state_layout(shard_ids(), ...).bytes
  const StateView* states;  // read by a merge: [state_count], host memory, ascending ids, none empty
  int32_t state_count;
  int threads;  // CPU only, 0: default

  void* workspace;
  size_t workspace_bytes;
  Device device;
  const char* kernel;  // forced row of the table, or nullptr

  IdRange shard_ids() const { return {first_id, first_id + count}; }
};

// States of a merge: as the caller lists them, and after check in ascending order. Outlives the Params that point to
// it.
struct MergeInput {
  const isobit_linear_logp_state* listed;
  int32_t count;
  StateView ordered[kMaxShards];
};

// The only place where isobit_linear_logp_args are read. `state` is what a shard call writes, `merge` what a merge
// reads.
Status check(const isobit_linear_logp_args* args, Purpose purpose, Params* params, void* state = nullptr,
             MergeInput* merge = nullptr);

}  // namespace isobit::linear_logp
