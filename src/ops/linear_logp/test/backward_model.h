// The sums of the backward pass written down once more, slowly and in another shape, from docs/bit-contract.md: a chain
// of scalar steps per output. `Faults` turn one rule off each, to show that the comparison sees it.
#pragma once

#include "ops/linear_logp/test/backward_problem.h"

namespace isobit::linear_logp::test {

struct Faults {
  int64_t piece = 8192;
  bool ascending_segments = false;  // a chain of segments in place of the tree
  bool counts_ignored_rows = false;
  bool rounds_dt_twice = false;  // to fp16's 11 bits first
};

struct ModelGradients {
  std::vector<float> hidden, weight, bias;
};

ModelGradients model_gradients(const Problem& problem, const UpstreamValues& upstream, const Faults& faults = {});

}  // namespace isobit::linear_logp::test
