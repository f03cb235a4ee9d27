// From a dot product to a logit, and what the rows bring along; docs/bit-contract.md section 3.1.
#pragma once

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "ops/linear_logp/cuda/job.h"
#include "ops/linear_logp/logit.h"

namespace isobit::linear_logp::cuda {

__device__ __forceinline__ float bias_at(const Params& p, int64_t id) {
  const int64_t offset = (id - p.first_id) * p.bias_stride;
  if (p.bias_dtype == ISOBIT_FP32) return static_cast<const float*>(p.bias)[offset];
  const uint16_t bits = static_cast<const uint16_t*>(p.bias)[offset];
  return p.bias_dtype == ISOBIT_BF16 ? numerics::bf16_to_float(bits) : numerics::fp16_to_float(bits);
}

__device__ __forceinline__ float temperature_at(const Params& p, int64_t row) {
  return p.temperature != nullptr ? p.temperature[row * p.temperature_stride] : p.temperature_value;
}

__device__ __forceinline__ int64_t target_at(const Params& p, int64_t row, int64_t k) {
  const int64_t offset = row * p.target_row_stride + k * p.target_column_stride;
  return p.target_is_int64 ? static_cast<const int64_t*>(p.target)[offset]
                           : static_cast<const int32_t*>(p.target)[offset];
}

__device__ __forceinline__ bool is_ignored(const Params& p, int64_t target) {
  return p.use_ignore_index && target == p.ignore_index;
}

__device__ __forceinline__ bool is_id(const Params& p, int64_t target) { return target >= 0 && target < p.vocab; }

__device__ __forceinline__ bool has_logit(const Params& p, int64_t target) {
  return !is_ignored(p, target) && is_id(p, target);
}

__device__ __forceinline__ bool is_ignored_row(const Params& p, int64_t row) {
  for (int64_t k = 0; k < p.targets; ++k) {
    if (!is_ignored(p, target_at(p, row, k))) return false;
  }
  return true;
}

// The logit of an existing id of this shard from its dot product: finish_logit with the bias loaded only if there is
// one.
__device__ __forceinline__ float logit(const Params& p, float t, int64_t id, float temperature) {
  if (p.bias != nullptr) t = numerics::add_rn(t, bias_at(p, id));
  if (p.softcap != 0.0f) t = softcap_logit(t, p.softcap);
  return temper_logit(t, temperature);
}

}  // namespace isobit::linear_logp::cuda
