// From two sums to a hidden value: the operations that every kernel of the operator executes, in the order of the
// contract.
#pragma once

#include "numerics/gelu.h"
#include "numerics/ieee.h"
#include "numerics/nvfp4_block.h"

namespace isobit::nvfp4_geglu {

// The global scales of a call, in the forms that the epilogue uses.
struct Scales {
  float gate;  // x scale times gate scale
  float up;
  numerics::Nvfp4Encoder out;
};

ISOBIT_HD Scales scales_of(float x, float gate, float up, float out) {
  const float usable = numerics::usable_global_scale(x);
  return {numerics::mul_rn(usable, numerics::usable_global_scale(gate)),
          numerics::mul_rn(usable, numerics::usable_global_scale(up)), numerics::nvfp4_encoder(out)};
}

// Adding +0 to the products changes nothing but a sum of -0, which a matrix unit may give whose rule nobody measured.
template <numerics::Gelu kGelu>
ISOBIT_HD float hidden_of(float gate_sum, float up_sum, const Scales& scales) {
  const float gate = numerics::fma_rn(gate_sum, scales.gate, 0.0f);
  const float up = numerics::fma_rn(up_sum, scales.up, 0.0f);
  return numerics::mul_rn(numerics::gelu<kGelu, numerics::GeluSequence::kShort>(gate), up);
}

}  // namespace isobit::nvfp4_geglu
