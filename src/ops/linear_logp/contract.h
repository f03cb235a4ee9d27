// linear_logp: arguments -> checked parameters. Every rule and limit of the operator is enforced here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"
#include "isobit/linear_logp.h"

namespace isobit::linear_logp {

// Draft until the Hopper kernel has settled the constants (docs/bit-contract.md).
inline constexpr const char* kContract = "linear_logp/sm90-k16-f25/0";

// A written output of shape [N], [N, K] or [N, T]; data is nullptr if it is not wanted.
template <class T>
struct Output {
  T* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
  explicit operator bool() const { return data != nullptr; }
  T& at(int64_t row, int64_t column = 0) const { return data[row * row_stride + column * column_stride]; }
};

// Checked parameters; goes to kernels by value.
struct Params {
  int64_t rows;      // N
  int64_t width;     // H
  int64_t vocab;     // V
  int64_t first_id;  // of weight row 0
  int64_t count;     // ids of this shard that exist: V in a call without shards
  int64_t targets;   // K
  int64_t top;       // T, 0 without a top list

  isobit_dtype dtype;     // bf16 or fp16, of hidden and weight
  const void* hidden;     // [N, H]
  int64_t hidden_stride;  // elements from row to row
  const void* weight;     // [count, H]
  int64_t weight_stride;

  const void* bias;  // [count] of bias_dtype, or nullptr
  isobit_dtype bias_dtype;
  int64_t bias_stride;

  const void* target;  // [N, K] int32 or int64
  bool target_is_int64;
  int64_t target_row_stride;
  int64_t target_column_stride;

  const float* temperature;  // [N], or nullptr: temperature_value
  int64_t temperature_stride;
  float temperature_value;
  float softcap;  // 0: none

  int64_t ignore_index;
  bool use_ignore_index;

  Output<float> logp;          // [N, K]
  Output<float> lse;           // [N]
  Output<float> entropy;       // [N]
  Output<int32_t> rank;        // [N, K]
  Output<float> target_logit;  // [N, K]
  Output<int32_t> top_id;      // [N, T]
  Output<float> top_logp;      // [N, T]

  void* workspace;
  size_t workspace_bytes;
  Device device;
  int threads;         // CPU only, 0: default
  const char* kernel;  // forced row of the table, or nullptr
};

// What a call is going to do; decides which tensors must be there.
enum class Purpose { kWhole, kShard, kMerge };

// The only place where isobit_linear_logp_args are read.
Status check(const isobit_linear_logp_args* args, Purpose purpose, Params* params);

}  // namespace isobit::linear_logp
