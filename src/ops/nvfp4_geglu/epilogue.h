// From two sums to a hidden value: the operations that every kernel of the operator executes, in the order of the
// contract.
#pragma once

#include "numerics/gelu.h"
#include "numerics/ieee.h"
#include "numerics/nvfp4_block.h"

namespace isobit::nvfp4_geglu {

// The global scales of a call, in the forms that the epilogue uses.
struct Scales {
  float gate;                  // x scale times gate scale
  numerics::Nvfp4Encoder out;  // of hidden values that lack the factor x scale times up scale
};

ISOBIT_HD Scales scales_of(float x, float gate, float up, float out) {
  const float usable = numerics::usable_global_scale(x);
  const float of_up = numerics::mul_rn(usable, numerics::usable_global_scale(up));
  return {numerics::mul_rn(usable, numerics::usable_global_scale(gate)),
          numerics::nvfp4_encoder(numerics::mul_rn(numerics::usable_global_scale(out), of_up))};
}

// A sum of -0, which a matrix unit may give whose rule nobody measured, counts as +0.
ISOBIT_HD float plus_zero(float sum) { return numerics::add_rn(sum, 0.0f); }

// The hidden value in units of the sum of up, which is not -0; that of gate may be.
template <numerics::Gelu kGelu>
ISOBIT_HD float hidden_of(float gate_sum, float up_sum, const Scales& scales) {
  const float gate = numerics::fma_rn(gate_sum, scales.gate, 0.0f);
  return numerics::mul_rn(numerics::gelu<kGelu, numerics::GeluSequence::kCoarse>(gate), up_sum);
}

}  // namespace isobit::nvfp4_geglu
