// A backward call over vocabulary shards in a place: what every step of it leaves.
#pragma once

#include "ops/linear_logp/test/backward_case.h"

namespace isobit::linear_logp::test {

struct ShardedBytes {
  BackwardBytes merged;  // logp, lse and entropy of the merge that saves; gradients
  std::string saved;
  std::vector<std::string> parts;
  bool operator==(const ShardedBytes&) const = default;
};

// Shards [cuts[i], cuts[i + 1]): states, the merge that saves, a part and rows of d_weight and d_bias each, the merge
// of parts. The case wants forward_outputs and d_hidden. Fails the test unless every call is OK.
ShardedBytes run_backward_shards(const BackwardCase& c, const std::vector<int64_t>& cuts, Place* place,
                                 const char* kernel = nullptr);
ShardedBytes run_backward_shards_on_cpu(const BackwardCase& c, const std::vector<int64_t>& cuts);

}  // namespace isobit::linear_logp::test
