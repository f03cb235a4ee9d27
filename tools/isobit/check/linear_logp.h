// The two checks of linear_logp.
#pragma once

#include "check/check.h"

namespace isobit::cli {

// Values against the fp64 oracle, within the bounds of the operator's page.
void check_linear_logp_values(const CheckOptions& options, const Kernel& kernel, CheckReport& report);

// Bytes against bytes over everything that the contract leaves free.
void check_linear_logp_invariance(const CheckOptions& options, const Kernel& kernel, CheckReport& report);

}  // namespace isobit::cli
