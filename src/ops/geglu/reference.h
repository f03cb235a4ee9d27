// geglu in double precision, straight from the definition: the oracle of the tests. Shares no arithmetic with a kernel.
#pragma once

#include <cstdint>

#include "ops/geglu/contract.h"

namespace isobit::geglu {

double reference_gelu(numerics::Gelu gelu, double a);
double reference_slope(numerics::Gelu gelu, double a);

// Results of one element before they are rounded to the dtype. round_gelu is not applied.
struct ReferenceElement {
  double out;
  double d_gate, d_up;  // backward
  double d_out_up;      // backward: d_out up, the scale of an error in d_gate
};

// Element (row, column) of a checked call on CPU tensors.
ReferenceElement reference_element(const Params& params, int64_t row, int64_t column);

}  // namespace isobit::geglu
