// The check of targets and temperatures, for callers who want an error instead of NaN rows.
#pragma once

#include "ops/linear_logp/contract.h"

namespace isobit::linear_logp {

// First row with a target outside [0, V) or a temperature that is not above 0 (ignored rows have neither), or -1.
Status find_bad_row(const isobit_linear_logp_args& args, const Params& params, int64_t* row, void* stream);

}  // namespace isobit::linear_logp
