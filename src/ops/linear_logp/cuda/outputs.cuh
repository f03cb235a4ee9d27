// From a row's value to the outputs of one row and target; docs/bit-contract.md section 3.4.
#pragma once

#include "ops/linear_logp/cuda/logit.cuh"
#include "ops/linear_logp/finish.h"

namespace isobit::linear_logp::cuda {

// What the targets of a row decide before any logit does.
struct RowTargets {
  bool ignored;  // all of them
  bool outside;  // one that is not ignored is no id
};

__device__ __forceinline__ RowTargets inspect_targets(const Params& p, int64_t row) {
  RowTargets found{true, false};
  for (int64_t k = 0; k < p.targets; ++k) {
    const int64_t target = target_at(p, row, k);
    if (is_ignored(p, target)) continue;
    found.ignored = false;
    found.outside = found.outside || !is_id(p, target);
  }
  return found;
}

template <class T>
__device__ __forceinline__ void write(const Output<T>& output, int64_t row, int64_t k, T value) {
  if (output.data != nullptr) output.data[row * output.row_stride + k * output.column_stride] = value;
}

__device__ __forceinline__ void write_row(const Params& p, int64_t row, const RowTargets& targets, const RowSum& sum,
                                          const Node& node) {
  const float nan = numerics::bits_float(numerics::kNanBits);
  write(p.lse, row, 0, targets.ignored ? 0.0f : targets.outside ? nan : row_lse(sum));
  if (!p.wants_entropy) return;
  write(p.entropy, row, 0, targets.ignored ? 0.0f : targets.outside ? nan : row_entropy(sum, node));
}

enum class RowState { kValid, kIgnored, kInvalid };

// As the backward pass tells rows apart; docs/bit-contract.md section 3.6.
__device__ __forceinline__ RowState row_state(const Params& p, int64_t row) {
  const RowTargets targets = inspect_targets(p, row);
  if (targets.ignored) return RowState::kIgnored;
  return targets.outside || !(temperature_at(p, row) > 0.0f) ? RowState::kInvalid : RowState::kValid;
}

// A target of a row, and what the call found for it; logit and rank are not used where the target decides alone.
struct Target {
  bool ignored;
  bool valid;  // an id
  float z;
  int32_t rank;
};

__device__ __forceinline__ Target find_target(const Params& p, int64_t row, int64_t k) {
  const int64_t target = target_at(p, row, k);
  return {is_ignored(p, target), is_id(p, target), 0.0f, 0};
}

// Nobody has written the logit of a target that is none.
__device__ __forceinline__ void load_target(const Job& job, int64_t row, int64_t k, Target* target) {
  if (target->ignored || !target->valid) return;
  target->z = job.target_logit.data[row * job.target_logit.row_stride + k * job.target_logit.column_stride];
  if (job.rank.data != nullptr) target->rank = job.rank.data[row * job.rank.row_stride + k * job.rank.column_stride];
}

// A temperature that is not positive needs no case: it has made every logit NaN.
__device__ __forceinline__ void write_target(const Params& p, int64_t row, int64_t k, const RowSum& sum,
                                             const Target& target) {
  const float nan = numerics::bits_float(numerics::kNanBits);
  if (target.ignored) {
    write(p.logp, row, k, 0.0f);
    write(p.target_logit, row, k, 0.0f);
    write(p.rank, row, k, 0);
    return;
  }
  const bool ranked = target.valid && sum.kind == RowKind::kUsual;
  write(p.logp, row, k, target.valid ? row_logp(sum, target.z) : nan);
  write(p.target_logit, row, k, target.valid ? numerics::canonical_nan(target.z) : nan);
  write(p.rank, row, k, ranked ? target.rank : -1);
}

// Entry t of the top list: a logit of the row and its id.
__device__ __forceinline__ void write_top(const Params& p, int64_t row, int64_t t, const RowTargets& targets,
                                          const RowSum& sum, float z, int32_t id) {
  const bool listed = !targets.outside && sum.kind == RowKind::kUsual;
  const float nan = numerics::bits_float(numerics::kNanBits);
  write(p.top_id, row, t, targets.ignored ? 0 : listed ? id : -1);
  write(p.top_logp, row, t, targets.ignored ? 0.0f : listed ? row_logp(sum, z) : nan);
}

}  // namespace isobit::linear_logp::cuda
