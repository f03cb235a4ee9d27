#include "ops/linear_logp/backward_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isobit::linear_logp {
namespace {

double value_or_zero(const std::vector<double>& values, int64_t at) { return values.empty() ? 0.0 : values[at]; }

bool is_ignored(const ReferenceProblem& problem, int64_t id) {
  return problem.use_ignore_index && id == problem.ignore_index;
}

// The logits before softcap and temperature.
std::vector<double> raw_logits(const ReferenceProblem& problem, int64_t row) {
  ReferenceProblem plain = problem;
  plain.softcap = 0;
  plain.temperature.assign(problem.rows, 1.0);
  return reference_logits(plain, row);
}

// dz from probabilities; `other[v]` is 1 - p[v].
std::vector<double> gradient_of_logits(const ReferenceProblem& problem, const ReferenceUpstream& upstream, int64_t row,
                                       const std::vector<double>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double z : logits) sum += std::exp(z - largest);
  std::vector<double> p(problem.vocab);
  double entropy = 0;
  for (int64_t v = 0; v < problem.vocab; ++v) {
    const double log_p = logits[v] - largest - std::log(sum);
    p[v] = std::exp(log_p);
    if (p[v] > 0) entropy -= p[v] * log_p;
  }
  std::vector<double> dz(problem.vocab, 0.0);
  for (int64_t v = 0; v < problem.vocab; ++v) {
    const double log_p = p[v] > 0 ? logits[v] - largest - std::log(sum) : 0.0;
    dz[v] = p[v] * (value_or_zero(upstream.lse, row) - value_or_zero(upstream.entropy, row) * (log_p + entropy));
  }
  for (int64_t k = 0; k < problem.targets && !upstream.logp.empty(); ++k) {
    const int64_t id = problem.target[row * problem.targets + k];
    const double g = upstream.logp[row * problem.targets + k];
    if (is_ignored(problem, id)) continue;
    double others = 0;
    for (int64_t v = 0; v < problem.vocab; ++v) {
      if (v == id) continue;
      others += p[v];
      dz[v] -= g * p[v];
    }
    dz[id] += g * others;
  }
  return dz;
}

}  // namespace

ReferenceRowKind reference_row_kind(const ReferenceProblem& problem, int64_t row) {
  int64_t ignored = 0;
  bool outside = false;
  for (int64_t k = 0; k < problem.targets; ++k) {
    const int64_t id = problem.target[row * problem.targets + k];
    if (is_ignored(problem, id)) {
      ++ignored;
    } else {
      outside = outside || id < 0 || id >= problem.vocab;
    }
  }
  if (ignored == problem.targets) return ReferenceRowKind::kIgnored;
  return outside || !(problem.temperature[row] > 0) ? ReferenceRowKind::kInvalid : ReferenceRowKind::kValid;
}

std::vector<double> reference_dt(const ReferenceProblem& problem, const ReferenceUpstream& upstream, int64_t row) {
  if (reference_row_kind(problem, row) != ReferenceRowKind::kValid) return std::vector<double>(problem.vocab, 0.0);
  std::vector<double> dt = gradient_of_logits(problem, upstream, row, reference_logits(problem, row));
  const std::vector<double> raw = problem.softcap > 0 ? raw_logits(problem, row) : std::vector<double>();
  for (int64_t v = 0; v < problem.vocab; ++v) {
    if (problem.softcap > 0) {
      const double h = std::tanh(raw[v] / problem.softcap);
      dt[v] *= 1 - h * h;
    }
    dt[v] /= problem.temperature[row];
  }
  return dt;
}

ReferenceGradients reference_gradients(const ReferenceProblem& problem, const ReferenceUpstream& upstream) {
  ReferenceGradients out;
  out.d_hidden.assign(problem.rows * problem.width, 0.0);
  out.d_weight.assign(problem.vocab * problem.width, 0.0);
  out.d_bias.assign(problem.vocab, 0.0);
  for (int64_t n = 0; n < problem.rows; ++n) {
    const std::vector<double> dt = reference_dt(problem, upstream, n);
    out.dt.insert(out.dt.end(), dt.begin(), dt.end());
    const ReferenceRowKind kind = reference_row_kind(problem, n);
    for (int64_t k = 0; k < problem.width && kind == ReferenceRowKind::kInvalid; ++k) {
      out.d_hidden[n * problem.width + k] = std::numeric_limits<double>::quiet_NaN();
    }
    if (kind != ReferenceRowKind::kValid) continue;
    for (int64_t v = 0; v < problem.vocab; ++v) {
      out.d_bias[v] += dt[v];
      for (int64_t k = 0; k < problem.width; ++k) {
        out.d_hidden[n * problem.width + k] += dt[v] * problem.weight[v * problem.width + k];
        out.d_weight[v * problem.width + k] += dt[v] * problem.hidden[n * problem.width + k];
      }
    }
  }
  return out;
}

}  // namespace isobit::linear_logp
