// What a row and its targets contribute to dz; docs/bit-contract.md section 3.6.
#pragma once

#include "ops/linear_logp/cuda/backward_job.h"
#include "ops/linear_logp/cuda/logit.cuh"

namespace isobit::linear_logp::cuda {

// Logits are products and nothing else.
ISOBIT_HD constexpr bool has_plain_logits(const Params& p) {
  return p.bias == nullptr && p.softcap == 0.0f && p.temperature == nullptr && p.temperature_value == 1.0f;
}

// The logit of an existing id of the call from its dot product, with the slope of its softcap.
__device__ __forceinline__ LogitAndSlope logit_and_slope(const Params& p, float t, int64_t id, float temperature) {
  // Not by the address of a bias: that would put it into local memory.
  if (p.bias != nullptr) t = numerics::add_rn(t, bias_at(p, id));
  return finish_logit_and_slope(t, nullptr, p.softcap, temperature);
}

// dt of an id that is no target.
template <bool kEntropy>
__device__ __forceinline__ uint16_t dot_gradient(const Params& p, const GradientRow& g, float t, int64_t id,
                                                 float temperature) {
  const LogitAndSlope logit = logit_and_slope(p, t, id, temperature);
  return gradient_of_dot(gradient_of_logit<kEntropy>(g, logit.z), logit.slope, p.softcap);
}

// dt of a target id of `row`, a valid row of the call.
template <bool kEntropy>
__device__ __forceinline__ uint16_t target_dot_gradient(const BackwardJob& job, const GradientRow& g, int64_t row,
                                                        int64_t target, float t) {
  const Params& p = job.p.forward;
  const float temperature = temperature_at(p, row);
  const auto upstream = [&](int64_t k) { return job.p.d_logp.at(row, k); };
  const float gain =
      sum_gradients(p.targets, temperature, upstream, [&](int64_t k) { return target_at(p, row, k) == target; });
  const float others = sum_gradients(p.targets, temperature, upstream, [&](int64_t k) {
    const int64_t other = target_at(p, row, k);
    return other != target && has_logit(p, other);
  });
  const LogitAndSlope logit = logit_and_slope(p, t, target, temperature);
  const RowRecord record = load_record(job.saved, row);
  const float dz =
      gradient_of_target<kEntropy>(g, gradient_target(g, gain, others), logit.z, record.lead == target, record.others);
  return gradient_of_dot(dz, logit.slope, p.softcap);
}

}  // namespace isobit::linear_logp::cuda
