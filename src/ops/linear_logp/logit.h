// What becomes of a dot product before it is a logit; docs/bit-contract.md section 3.1.
#pragma once

#include "numerics/tanh.h"

namespace isobit::linear_logp {

ISOBIT_HD float softcap_logit(float t, float softcap) {
  return numerics::mul_rn(softcap, numerics::tanh(numerics::div_rn(t, softcap)));
}

// Any temperature that is not above 0 makes the logit NaN.
ISOBIT_HD float temper_logit(float t, float temperature) {
  if (temperature == 1.0f) return t;
  return temperature > 0.0f ? numerics::div_rn(t, temperature) : numerics::bits_float(numerics::kNanBits);
}

// bias: nullptr for none. softcap: 0 for none.
ISOBIT_HD float finish_logit(float t, const float* bias, float softcap, float temperature) {
  if (bias != nullptr) t = numerics::add_rn(t, *bias);
  if (softcap != 0.0f) t = softcap_logit(t, softcap);
  return temper_logit(t, temperature);
}

}  // namespace isobit::linear_logp
