// The oracle: linear_logp in fp64 by its textbook formulas. Slow, obvious, and without a line of the kernels' code, so
// that a mistake cannot cancel. Not part of the library: tests and the command line compile it in.
#pragma once

#include <cstdint>
#include <vector>

namespace isobit::linear_logp {

struct ReferenceProblem {
  int64_t rows = 0;                 // N
  int64_t width = 0;                // H
  int64_t vocab = 0;                // V
  int64_t targets = 1;              // K
  int64_t top = 0;                  // T
  std::vector<double> hidden;       // [N, H]
  std::vector<double> weight;       // [V, H]
  std::vector<double> bias;         // [V], or empty
  std::vector<double> temperature;  // [N]
  std::vector<int64_t> target;      // [N, K]
  double softcap = 0;               // 0: none
  bool use_ignore_index = false;
  int64_t ignore_index = 0;
};

struct ReferenceRow {
  double lse = 0;
  double entropy = 0;
  std::vector<double> logp;          // [K]
  std::vector<double> target_logit;  // [K]
  std::vector<int64_t> rank;         // [K]
  std::vector<int64_t> top_id;       // [T]
  std::vector<double> top_logp;      // [T]
};

// z of every id.
std::vector<double> reference_logits(const ReferenceProblem& problem, int64_t row);

ReferenceRow reference_row(const ReferenceProblem& problem, int64_t row);

// The outputs of a row whose logits are given; its targets and options are those of `row`.
ReferenceRow reference_from_logits(const ReferenceProblem& problem, int64_t row, const std::vector<double>& logits);

}  // namespace isobit::linear_logp
