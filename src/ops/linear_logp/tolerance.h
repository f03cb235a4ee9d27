// Bounds of the outputs' errors against fp64, derived in README.md (Numerics) for logits within +-2^20. The tests read
// them here.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/linear_logp/tree.h"

namespace isobit::linear_logp {

inline constexpr double kErrorUnit = 0x1p-24;  // half a unit in the last place of 1
inline constexpr double kBoundedLogit = 0x1p20;

// Additions that one term can pass on its way to the row's sum, each with a relative error of kErrorUnit.
constexpr double sum_depth(int64_t vocab) { return 7.0 + 7.0 * row_level(vocab); }

// A sum's relative error: its terms' (3.2 units) and that of the additions.
constexpr double sum_error(int64_t vocab) { return 3.2 + sum_depth(vocab); }

inline double lse_bound(double lse, int64_t vocab) {
  return kErrorUnit * (1.001 * std::fabs(lse) + sum_error(vocab) + 1.0);
}

inline double logp_bound(double logp, int64_t vocab) {
  return kErrorUnit * (1.001 * std::fabs(logp) + sum_error(vocab) + 3.0);
}

// `weight` is the mean of |w| over the row's distribution, w the logit relative to the reference exponents met on the
// way: the mean of |z| when every |z| <= 60, else at most 120 + twice the mean of (largest z) - z.
inline double entropy_bound(double lse, double entropy, double weight, int64_t vocab) {
  const double depth = sum_depth(vocab);
  return kErrorUnit * ((2.0 * depth + 12.0) * (weight + 1.0) + std::fabs(lse) + entropy + depth + 4.0);
}

// A logit's error: `absolute_sum` is the sum of |hidden * weight|. One step of 16 products truncates 17 terms to 2^-25
// of the largest and the sum to 2^-23; bias, softcap and temperature add their own roundings.
inline double logit_bound(int64_t width, double absolute_sum, double logit, double temperature) {
  const double steps = std::ceil(static_cast<double>(width) / 16.0);
  const double dot = steps * (17.0 * 0x1p-25 + 0x1p-23) * absolute_sum;
  return dot / temperature + 8.0 * kErrorUnit * std::fabs(logit);
}

// A gradient of a dot product before it enters the sums: its own rounding to bf16, and `share` = p times the upstream
// gradients it meets, (sum of |d_logp| + |d_lse| + |d_entropy| (|log p| + entropy + 1)) / T, off by the logits' errors
// and some 2^-14 of the entropy's and the softcap's.
inline double dt_bound(double dt, double share, double logit_error) {
  return 0x1.02p-8 * std::fabs(dt) + share * (4.0 * logit_error + 0x1p-14);
}

// A chain of `terms` products of the gradients: truncation as in logit_bound, and one rounding a piece and tree level.
inline double gradient_sum_bound(int64_t terms, double absolute_sum) {
  const double steps = std::ceil(static_cast<double>(terms < 8192 ? terms : 8192) / 16.0);
  return (steps * (17.0 * 0x1p-25 + 0x1p-23) + 32.0 * kErrorUnit) * absolute_sum;
}

// 1 - p of a row's lead in fp32: the others' sum and the row's sum, the two normalisations, and the share itself.
constexpr double confident_error(int64_t vocab) { return kErrorUnit * (2.0 * sum_error(vocab) + 6.0); }

}  // namespace isobit::linear_logp
