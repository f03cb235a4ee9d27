// One element of geglu: the operations that every kernel of the operator executes, in the order of the contract.
#pragma once

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "numerics/fp32.h"
#include "numerics/gelu.h"

namespace isobit::geglu {

// Which sequence of gelu each direction uses for a format.
template <class Format>
struct Sequences {
  static constexpr numerics::GeluSequence kForward = numerics::GeluSequence::kShort;
  static constexpr numerics::GeluSequence kBackward = numerics::GeluSequence::kLong;
};
template <>
struct Sequences<numerics::Fp32> {
  static constexpr numerics::GeluSequence kForward = numerics::GeluSequence::kCompensated;
  static constexpr numerics::GeluSequence kBackward = numerics::GeluSequence::kCompensated;
};

template <class Format, numerics::Gelu kGelu>
ISOBIT_HD float forward_gelu(float a) {
  return numerics::gelu<kGelu, Sequences<Format>::kForward>(a);
}

template <class Format, numerics::Gelu kGelu>
ISOBIT_HD numerics::GeluAndSlope backward_gelu(float a) {
  return numerics::gelu_and_slope<kGelu, Sequences<Format>::kBackward>(a);
}

// round_gelu: the value as a tensor of the format would hold it. `Rounding` offers to_float and from_float.
template <class Rounding>
ISOBIT_HD float rounded_to(float x) {
  return Rounding::to_float(Rounding::from_float(x));
}

// The products, before the one rounding to the format.
ISOBIT_HD float out_of(float value, float b) { return numerics::mul_rn(value, b); }
ISOBIT_HD float d_gate_of(float d, float b, float slope) { return numerics::mul_rn(numerics::mul_rn(d, b), slope); }
ISOBIT_HD float d_up_of(float d, float value) { return numerics::mul_rn(d, value); }

}  // namespace isobit::geglu
