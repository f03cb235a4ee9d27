#include "ops/linear_logp/backward_bounds.h"

#include <cmath>

#include "ops/linear_logp/tolerance.h"

namespace isobit::linear_logp {
namespace {

double size_of(const std::vector<double>& values, int64_t at) { return values.empty() ? 0.0 : std::fabs(values[at]); }

// Of the dt of a valid row.
std::vector<double> dt_bounds(const ReferenceProblem& problem, const ReferenceUpstream& upstream, int64_t row,
                              const double* dt) {
  const std::vector<double> logits = reference_logits(problem, row);
  const ReferenceRow values = reference_from_logits(problem, row, logits);
  const double temperature = problem.temperature[row];
  double others = size_of(upstream.lse, row);
  for (int64_t k = 0; k < problem.targets; ++k) others += size_of(upstream.logp, row * problem.targets + k);
  std::vector<double> bounds;
  for (int64_t v = 0; v < problem.vocab; ++v) {
    double absolute = 0;
    for (int64_t k = 0; k < problem.width; ++k) {
      absolute += std::fabs(problem.hidden[row * problem.width + k] * problem.weight[v * problem.width + k]);
    }
    const double log_p = logits[v] - values.lse;
    const double share =
        std::exp(log_p) * (others + size_of(upstream.entropy, row) * (std::fabs(log_p) + values.entropy + 1));
    bounds.push_back(
        dt_bound(dt[v], share / temperature, logit_bound(problem.width, absolute, logits[v], temperature)));
  }
  return bounds;
}

}  // namespace

GradientBounds gradient_bounds(const ReferenceProblem& problem, const ReferenceUpstream& upstream,
                               const ReferenceGradients& gradients) {
  GradientBounds out;
  out.d_hidden.assign(gradients.d_hidden.size(), 0.0);
  out.d_weight.assign(gradients.d_weight.size(), 0.0);
  out.d_bias.assign(gradients.d_bias.size(), 0.0);
  const double row_share = gradient_sum_bound(problem.vocab, 1.0);
  const double id_share = gradient_sum_bound(problem.rows, 1.0);
  for (int64_t n = 0; n < problem.rows; ++n) {
    if (reference_row_kind(problem, n) != ReferenceRowKind::kValid) continue;
    const double* const dt = &gradients.dt[n * problem.vocab];
    const std::vector<double> bounds = dt_bounds(problem, upstream, n, dt);
    for (int64_t v = 0; v < problem.vocab; ++v) {
      const double into_hidden = bounds[v] + row_share * std::fabs(dt[v]);
      const double into_weight = bounds[v] + id_share * std::fabs(dt[v]);
      out.d_bias[v] += into_weight;
      for (int64_t k = 0; k < problem.width; ++k) {
        out.d_hidden[n * problem.width + k] += into_hidden * std::fabs(problem.weight[v * problem.width + k]);
        out.d_weight[v * problem.width + k] += into_weight * std::fabs(problem.hidden[n * problem.width + k]);
      }
    }
  }
  return out;
}

}  // namespace isobit::linear_logp
