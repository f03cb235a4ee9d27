// The gradient of a row's outputs in its logits; docs/bit-contract.md section 3.6. The CPU backend and every GPU kernel
// call these functions, so the operations and their order stand here alone.
//
//   dz[v] = gain[v] (1 - p[v]) + p[v] (rest[v] - d_entropy (log p[v] + entropy))
//
// gain[v] = sum of d_logp over the row's targets that are v, rest[v] = d_lse - sum of d_logp over its other targets.
#pragma once

#include "numerics/bf16.h"
#include "ops/linear_logp/finish.h"
#include "ops/linear_logp/logit.h"
#include "ops/linear_logp/unit.h"

namespace isobit::linear_logp {

// What the forward pass leaves for the backward pass of a row. `lead` is the row's target with the largest logit (of
// equal ones the lowest id), -1 if none has a logit; `others` is the row's node with the lead's logit replaced by -inf:
// 1 - p of a confident target is their share of the sum, which has no cancellation.
struct RowRecord {
  Node row;
  Node others;  // r and s only
  int32_t lead;
};

// The ids that are no target, and what the targets share with them.
struct GradientRow {
  bool nan;     // every dz of the row is NaN: a logit is NaN or +inf, or all are -inf
  int32_t r;    // R of RowSum
  float inv_m;  // 1 / m
  float c;      // (d_lse - sum of d_logp) / (T m)
  float h;      // d_entropy / (T m)
  float b;      // entropy - log m
  float lse;    // d_lse / T
};

// One target id of a row.
struct GradientTarget {
  float gain;  // sum of d_logp / T over the targets that are this id
  float c;     // (d_lse - sum of d_logp over the others) / (T m)
};

// Upstream gradients are divided by the temperature before anything else.
ISOBIT_HD float temper_gradient(float upstream, float temperature) {
  return temperature == 1.0f ? upstream : numerics::div_rn(upstream, temperature);
}

// Sum of temper_gradient(d_logp) over the targets that `takes` accepts, ascending; +0 without one. `logp(k)` gives
// d_logp of target k.
template <class Logp, class Takes>
ISOBIT_HD float sum_gradients(int64_t targets, float temperature, const Logp& logp, const Takes& takes) {
  float sum = 0.0f;
  bool first = true;
  for (int64_t k = 0; k < targets; ++k) {
    if (!takes(k)) continue;
    const float term = temper_gradient(logp(k), temperature);
    sum = first ? term : numerics::add_rn(sum, term);
    first = false;
  }
  return sum;
}

// `logp_sum` is sum_gradients over every target that has a logit; d_lse and d_entropy are +0 where they are absent, and
// then row.q is not used.
ISOBIT_HD GradientRow gradient_row(const Node& row, float temperature, float logp_sum, float d_lse, float d_entropy,
                                   bool has_entropy) {
  GradientRow g{};
  const RowSum sum = row_sum(row);
  g.nan = sum.kind != RowKind::kUsual;
  if (g.nan) return g;
  const float m = numerics::split_log(row.s).m;
  g.r = sum.r;
  g.inv_m = numerics::div_rn(1.0f, m);
  g.lse = temper_gradient(d_lse, temperature);
  g.c = numerics::mul_rn(g.inv_m, numerics::sub_rn(g.lse, logp_sum));
  if (has_entropy) {
    g.h = numerics::mul_rn(g.inv_m, temper_gradient(d_entropy, temperature));
    g.b = numerics::sub_rn(row_entropy(sum, row), sum.log_m);
  }
  return g;
}

// `gain` and `others_sum` are sum_gradients over the row's targets with this id and over its other targets that have a
// logit.
ISOBIT_HD GradientTarget gradient_target(const GradientRow& g, float gain, float others_sum) {
  return {gain, numerics::mul_rn(g.inv_m, numerics::sub_rn(g.lse, others_sum))};
}

// p times factor / inv_m; factor = c - h (log p + entropy).
struct GradientTerm {
  float term;  // p m = 2^(n-R) P(f)
  float factor;
};

template <bool kEntropy>
ISOBIT_HD GradientTerm gradient_term(const GradientRow& g, float c, float z) {
  // -inf is reduced like -2^28, far below every reference.
  const numerics::Reduced reduced = numerics::reduce_log2(z);
  const int32_t d = reduced.n - g.r;
  const bool vanishes = d < kSmallestTerm || z == numerics::bits_float(0xFF800000u);
  const uint32_t bits = numerics::float_bits(numerics::exp2_polynomial(reduced.f)) + (static_cast<uint32_t>(d) << 23);
  const float term = vanishes ? 0.0f : numerics::bits_float(bits);
  if constexpr (!kEntropy) return {term, c};
  const float log_p = numerics::fma_rn(numerics::add_rn(static_cast<float>(d), reduced.f), kLn2, g.b);
  return {term, numerics::fma_rn(-g.h, log_p, c)};
}

// dz of an id that is no target of its row.
template <bool kEntropy>
ISOBIT_HD float gradient_of_logit(const GradientRow& g, float z) {
  const GradientTerm t = gradient_term<kEntropy>(g, g.c, z);
  return g.nan ? numerics::bits_float(numerics::kNanBits) : numerics::mul_rn(t.term, t.factor);
}

// 1 - p of the lead from the sum of the others.
ISOBIT_HD float others_share(const GradientRow& g, const Node& others) {
  if (is_identity(others)) return 0.0f;
  const numerics::Normalised parts = numerics::split_log(others.s);
  const int32_t d = others.r + parts.e - g.r;
  if (d < kSmallestTerm) return 0.0f;
  const uint32_t bits = numerics::float_bits(parts.m) + (static_cast<uint32_t>(d) << 23);
  return numerics::mul_rn(numerics::bits_float(bits), g.inv_m);
}

// dz of a target id. `others` is used where the id is the row's lead and p > 1/2.
template <bool kEntropy>
ISOBIT_HD float gradient_of_target(const GradientRow& g, const GradientTarget& target, float z, bool is_lead,
                                   const Node& others) {
  if (g.nan) return numerics::bits_float(numerics::kNanBits);
  const GradientTerm t = gradient_term<kEntropy>(g, target.c, z);
  const float p = numerics::mul_rn(t.term, g.inv_m);
  const float rest = is_lead && p > 0.5f ? others_share(g, others) : numerics::sub_rn(1.0f, p);
  return numerics::fma_rn(target.gain, rest, numerics::mul_rn(t.term, t.factor));
}

// A logit and the derivative of its softcap, 1 without one.
struct LogitAndSlope {
  float z;
  float slope;
};

// finish_logit, with the slope. The temperature's derivative is in GradientRow.
ISOBIT_HD LogitAndSlope finish_logit_and_slope(float t, const float* bias, float softcap, float temperature) {
  if (bias != nullptr) t = numerics::add_rn(t, *bias);
  float slope = 1.0f;
  if (softcap != 0.0f) {
    const float h = numerics::tanh(numerics::div_rn(t, softcap));
    slope = numerics::fma_rn(-h, h, 1.0f);
    t = numerics::mul_rn(softcap, h);
  }
  return {temper_logit(t, temperature), slope};
}

// The gradient in the dot product, as the tensor cores take it: one rounding.
ISOBIT_HD uint16_t gradient_of_dot(float dz, float slope, float softcap) {
  return numerics::bf16_from_float(softcap != 0.0f ? numerics::mul_rn(dz, slope) : dz);
}

}  // namespace isobit::linear_logp
