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

__device__ __forceinline__ void write_row(const Params& p, int64_t row, const Node& node) {
  const RowTargets targets = inspect_targets(p, row);
  const float nan = numerics::bits_float(numerics::kNanBits);
  const RowSum sum = row_sum(node);
  write(p.lse, row, 0, targets.ignored ? 0.0f : targets.outside ? nan : row_lse(sum));
  if (!p.wants_entropy) return;
  write(p.entropy, row, 0, targets.ignored ? 0.0f : targets.outside ? nan : row_entropy(sum, node));
}

// target_z and count are those of target k; they are not used where the target decides alone. A temperature that is not
// positive needs no case: it has made every logit NaN.
__device__ __forceinline__ void write_target(const Params& p, int64_t row, int64_t k, const Node& node, float target_z,
                                             int32_t count) {
  const int64_t target = target_at(p, row, k);
  const float nan = numerics::bits_float(numerics::kNanBits);
  if (is_ignored(p, target)) {
    write(p.logp, row, k, 0.0f);
    write(p.target_logit, row, k, 0.0f);
    write(p.rank, row, k, 0);
    return;
  }
  const RowSum sum = row_sum(node);
  const bool valid = is_id(p, target);
  const bool ranked = valid && sum.kind == RowKind::kUsual;
  write(p.logp, row, k, valid ? row_logp(sum, target_z) : nan);
  write(p.target_logit, row, k, valid ? numerics::canonical_nan(target_z) : nan);
  write(p.rank, row, k, ranked ? count : -1);
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
