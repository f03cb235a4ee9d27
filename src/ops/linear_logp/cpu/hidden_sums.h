// d_hidden of a block of valid rows: their gradients times the weight, over the ids of the call.
#pragma once

#include "ops/linear_logp/cpu/backward_plan.h"

namespace isobit::linear_logp::cpu {

// Rows valid[0 .. count): writes d_hidden, or the rows' place in the part.
void sum_hidden_block(const BackwardParams& p, void* saved, const int64_t* valid, int64_t count, const JobData& job);

// d_hidden, or the place in the part, of a row that is not valid.
void fill_hidden_row(const BackwardParams& p, int64_t row, float value);

}  // namespace isobit::linear_logp::cpu
