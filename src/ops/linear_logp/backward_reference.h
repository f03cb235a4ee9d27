// The oracle of the backward pass, in fp64 by the textbook formulas; shares no arithmetic with a kernel. Not part of
// the library.
#pragma once

#include <vector>

#include "ops/linear_logp/reference.h"

namespace isobit::linear_logp {

struct ReferenceUpstream {
  std::vector<double> logp;     // [N, K], or empty: zeros
  std::vector<double> lse;      // [N], or empty
  std::vector<double> entropy;  // [N], or empty
};

struct ReferenceGradients {
  std::vector<double> dt;        // [N, V]: of the dot products
  std::vector<double> d_hidden;  // [N, H]
  std::vector<double> d_weight;  // [V, H]
  std::vector<double> d_bias;    // [V]
};

enum class ReferenceRowKind { kValid, kIgnored, kInvalid };
ReferenceRowKind reference_row_kind(const ReferenceProblem& problem, int64_t row);

// dt of one row, zeros unless it is valid. 1 - p of an id is summed over the other ids.
std::vector<double> reference_dt(const ReferenceProblem& problem, const ReferenceUpstream& upstream, int64_t row);

// d_hidden of an invalid row is NaN.
ReferenceGradients reference_gradients(const ReferenceProblem& problem, const ReferenceUpstream& upstream);

}  // namespace isobit::linear_logp
