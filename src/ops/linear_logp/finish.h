// From a row's value to its outputs; docs/bit-contract.md section 3.4.
#pragma once

#include "numerics/exp2.h"
#include "numerics/log.h"
#include "ops/linear_logp/node.h"

namespace isobit::linear_logp {

enum class RowKind : int32_t {
  kUsual,
  kEmpty,  // every logit is -inf
  kNan,    // a logit is NaN or +inf, or the row has no valid temperature or target
};

// The row's sum as m 2^R: what all its outputs share.
struct RowSum {
  RowKind kind;
  int32_t e;  // s = m 2^e
  int32_t r;  // R = r + e
  float log_m;
};

ISOBIT_HD RowSum row_sum(const Node& row) {
  if (is_identity(row)) return {RowKind::kEmpty, 0, 0, 0.0f};
  if (numerics::is_nan(row.s)) return {RowKind::kNan, 0, 0, 0.0f};
  const numerics::Normalised parts = numerics::split_log(row.s);
  return {RowKind::kUsual, parts.e, row.r + parts.e, numerics::log_mantissa(parts.m)};
}

// k ln 2 + x.
ISOBIT_HD float add_ln2_multiple(int32_t k, float x) {
  const float n = static_cast<float>(k);
  return numerics::fma_rn(n, numerics::kLn2Hi, numerics::fma_rn(n, numerics::kLn2Lo, x));
}

ISOBIT_HD float row_lse(const RowSum& sum) {
  if (sum.kind == RowKind::kNan) return numerics::bits_float(numerics::kNanBits);
  if (sum.kind == RowKind::kEmpty) return numerics::bits_float(0xFF800000u);
  return add_ln2_multiple(sum.r, sum.log_m);
}

// Log-probability of a logit z of the row; at most +0, never -0.
ISOBIT_HD float row_logp(const RowSum& sum, float z) {
  if (sum.kind != RowKind::kUsual || numerics::is_nan(z)) return numerics::bits_float(numerics::kNanBits);
  if (z == numerics::bits_float(0xFF800000u)) return z;
  const numerics::Reduced reduced = numerics::reduce_log2(z);
  const float small = numerics::fma_rn(reduced.f, kLn2, -sum.log_m);
  const float logp = add_ln2_multiple(reduced.n - sum.r, small);
  return logp < 0.0f ? logp : 0.0f;
}

ISOBIT_HD float row_entropy(const RowSum& sum, const Node& row) {
  if (sum.kind != RowKind::kUsual) return numerics::bits_float(numerics::kNanBits);
  const float entropy = numerics::sub_rn(add_ln2_multiple(sum.e, sum.log_m), numerics::div_rn(row.q, row.s));
  return numerics::maximum(entropy, 0.0f);
}

// Whether id v is before the target in the order of descending logits, equal logits by id: what rank counts.
ISOBIT_HD constexpr bool ranks_before(float z, int64_t id, float target_z, int64_t target_id) {
  return z > target_z || (z == target_z && id < target_id);
}

}  // namespace isobit::linear_logp
