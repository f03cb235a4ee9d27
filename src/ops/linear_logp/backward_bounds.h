// Bounds of the fp32 gradients' errors against the oracle's, from tolerance.h. Not part of the library.
#pragma once

#include "ops/linear_logp/backward_reference.h"

namespace isobit::linear_logp {

struct GradientBounds {
  std::vector<double> d_hidden, d_weight, d_bias;  // in the shapes of ReferenceGradients
};

GradientBounds gradient_bounds(const ReferenceProblem& problem, const ReferenceUpstream& upstream,
                               const ReferenceGradients& gradients);

}  // namespace isobit::linear_logp
