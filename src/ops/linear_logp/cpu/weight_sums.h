// d_weight and d_bias of a block of ids: the gradients of all valid rows times their hidden states.
#pragma once

#include "ops/linear_logp/cpu/backward_plan.h"

namespace isobit::linear_logp::cpu {

// Existing ids of the call, at most the pieces' block; `valid` are all valid rows.
void sum_weight_block(const BackwardParams& p, void* saved, const int64_t* valid, int64_t valid_count, IdRange ids,
                      const JobData& job);

// Rows of d_weight and elements of d_bias that no valid row or no existing id concerns: +0, or left with accumulate.
void fill_weight_row(const BackwardParams& p, int64_t row);

}  // namespace isobit::linear_logp::cpu
