// The bytes of contract linear_logp_backward/sm90-k16-f25/1, frozen: hashes of the gradients of calls that touch each
// rule of docs/bit-contract.md section 3.6. A kernel that offers the id must give these hashes.
#pragma once

#include <span>

#include "ops/linear_logp/test/backward_case.h"

namespace isobit::linear_logp::test {

struct FrozenBackwardCase {
  const char* name;
  Shape shape;
  float weight_scale;   // as in FrozenCase
  bool everything;      // every option, upstream gradient and output; special rows; fp32 sums onto what is there
  uint64_t whole;       // hash of what a call writes
  uint64_t subtract_p;  // with that option
};

std::span<const FrozenBackwardCase> frozen_backward_cases();
BackwardCase frozen_backward_case(const FrozenBackwardCase& c);

uint64_t hash_gradients(const BackwardBytes& bytes);

}  // namespace isobit::linear_logp::test
