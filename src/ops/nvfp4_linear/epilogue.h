// What happens to a sum: the operations that every kernel of the operator executes, in the order of the contract.
#pragma once

#include "numerics/ieee.h"
#include "numerics/nvfp4_block.h"

namespace isobit::nvfp4_linear {

// The product of the two global decode scales; NaN if one is not usable.
ISOBIT_HD float alpha_of(float x_scale, float weight_scale) {
  return numerics::mul_rn(numerics::usable_global_scale(x_scale), numerics::usable_global_scale(weight_scale));
}

// The output before its conversion. Adding +0 to the product changes nothing but a sum of -0, which a matrix unit may
// give whose rule nobody measured.
ISOBIT_HD float scaled(float sum, float alpha) { return numerics::canonical_nan(numerics::fma_rn(sum, alpha, 0.0f)); }

}  // namespace isobit::nvfp4_linear
