// The part of the contract that concerns memory: shard states, workspace, and what may overlap what.
#pragma once

#include "ops/linear_logp/contract.h"

namespace isobit::linear_logp {

inline long long number(int64_t value) { return static_cast<long long>(value); }

// least <= value <= most, for the quantity called `letter` of the argument `name`.
Status check_limit(const char* name, const char* letter, int64_t value, int64_t least, int64_t most);

// The state that a shard call writes, and with rank the target logits that it reads.
Status check_state(const isobit_linear_logp_args& args, void* state, Params* params);

// The states that a merge reads: puts them in ascending order and checks that they partition [0, V).
Status check_states(MergeInput* merge, Params* params);

// Nothing that is written overlaps anything else, judged by first and last byte.
Status check_overlaps(const isobit_linear_logp_args& args, const Params& params);

}  // namespace isobit::linear_logp
