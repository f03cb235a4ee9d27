// Writing one row of a shard's state.
#pragma once

#include "ops/linear_logp/contract.h"
#include "ops/linear_logp/node.h"

namespace isobit::linear_logp::cpu {

void write_node_state(const Params& p, int64_t row, int64_t slot, const Node& node);
void write_target_state(const Params& p, int64_t row, int64_t k, float z);
void write_rank_state(const Params& p, int64_t row, const int32_t* rank);

// A row whose hidden state is not used: every node is `node`, the logits are -inf with the identity and else NaN.
void write_idle_state(const Params& p, int64_t row, const Node& node);

}  // namespace isobit::linear_logp::cpu
