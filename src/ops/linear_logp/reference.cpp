#include "ops/linear_logp/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace isobit::linear_logp {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Distribution {
  bool valid = false;  // has probabilities: no NaN, no +inf, not all -inf
  bool empty = true;   // all -inf
  double lse = 0;
  double entropy = 0;
};

Distribution distribution_of(const std::vector<double>& logits) {
  Distribution d;
  double largest = -kInfinity;
  for (const double z : logits) {
    if (std::isnan(z) || z == kInfinity) {
      d.empty = false;
      return d;
    }
    largest = std::max(largest, z);
  }
  if (largest == -kInfinity) return d;
  double sum = 0;
  for (const double z : logits) sum += std::exp(z - largest);
  d.valid = true;
  d.empty = false;
  d.lse = largest + std::log(sum);
  for (const double z : logits) {
    const double logp = (z - largest) - std::log(sum);
    const double p = std::exp(logp);
    if (p > 0) d.entropy -= p * logp;
  }
  return d;
}

int64_t rank_of(const std::vector<double>& logits, int64_t id) {
  int64_t rank = 0;
  for (int64_t v = 0; v < static_cast<int64_t>(logits.size()); ++v) {
    if (logits[v] > logits[id] || (logits[v] == logits[id] && v < id)) ++rank;
  }
  return rank;
}

}  // namespace

std::vector<double> reference_logits(const ReferenceProblem& problem, int64_t row) {
  std::vector<double> logits(problem.vocab);
  const double temperature = problem.temperature[row];
  for (int64_t v = 0; v < problem.vocab; ++v) {
    double z = 0;
    for (int64_t k = 0; k < problem.width; ++k) {
      z += problem.hidden[row * problem.width + k] * problem.weight[v * problem.width + k];
    }
    if (!problem.bias.empty()) z += problem.bias[v];
    if (problem.softcap > 0) z = problem.softcap * std::tanh(z / problem.softcap);
    logits[v] = temperature > 0 ? z / temperature : kNan;
  }
  return logits;
}

ReferenceRow reference_from_logits(const ReferenceProblem& problem, int64_t row, const std::vector<double>& logits) {
  ReferenceRow out;
  int64_t ignored = 0;
  bool outside = false;
  const Distribution d = distribution_of(logits);
  for (int64_t k = 0; k < problem.targets; ++k) {
    const int64_t id = problem.target[row * problem.targets + k];
    if (problem.use_ignore_index && id == problem.ignore_index) {
      ++ignored;
      out.logp.push_back(0);
      out.target_logit.push_back(0);
      out.rank.push_back(0);
    } else if (id < 0 || id >= problem.vocab) {
      outside = true;
      out.logp.push_back(kNan);
      out.target_logit.push_back(kNan);
      out.rank.push_back(-1);
    } else {
      out.logp.push_back(d.valid ? logits[id] - d.lse : kNan);
      out.target_logit.push_back(logits[id]);
      out.rank.push_back(d.valid ? rank_of(logits, id) : -1);
    }
  }
  if (ignored == problem.targets) {
    out.top_id.assign(problem.top, 0);
    out.top_logp.assign(problem.top, 0);
    return out;
  }
  out.lse = outside ? kNan : d.valid ? d.lse : d.empty ? -kInfinity : kNan;
  out.entropy = outside || !d.valid ? kNan : d.entropy;
  if (outside || !d.valid) {
    out.top_id.assign(problem.top, -1);
    out.top_logp.assign(problem.top, kNan);
    return out;
  }
  std::vector<int64_t> order(problem.vocab);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
  for (int64_t t = 0; t < problem.top; ++t) {
    out.top_id.push_back(order[t]);
    out.top_logp.push_back(logits[order[t]] - d.lse);
  }
  return out;
}

ReferenceRow reference_row(const ReferenceProblem& problem, int64_t row) {
  return reference_from_logits(problem, row, reference_logits(problem, row));
}

}  // namespace isobit::linear_logp
