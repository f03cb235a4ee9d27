// Single elements and dot products of a call's operands.
#pragma once

#include "cpu/mma/multiply_tile.h"
#include "numerics/hopper_mma.h"
#include "ops/linear_logp/contract.h"
#include "ops/linear_logp/logit.h"

namespace isobit::linear_logp::cpu {

inline isobit::cpu::Format operand_format(const Params& p) {
  return p.dtype == ISOBIT_BF16 ? isobit::cpu::Format::kBf16 : isobit::cpu::Format::kFp16;
}

inline isobit::cpu::Matrix16 weight_matrix(const Params& p) {
  return {static_cast<const uint16_t*>(p.weight), p.count, p.width, p.weight_stride, operand_format(p)};
}

inline float bias_of(const Params& p, int64_t id) {
  const int64_t at = (id - p.first_id) * p.bias_stride;
  if (p.bias_dtype == ISOBIT_FP32) return static_cast<const float*>(p.bias)[at];
  const uint16_t bits = static_cast<const uint16_t*>(p.bias)[at];
  return p.bias_dtype == ISOBIT_BF16 ? numerics::bf16_to_float(bits) : numerics::fp16_to_float(bits);
}

// One logit by the scalar model: at 4 ns a product, 1 / V of the work even of a single row.
inline float single_logit(const Params& p, int64_t row, int64_t id, float temperature) {
  const uint16_t* const h = static_cast<const uint16_t*>(p.hidden) + row * p.hidden_stride;
  const uint16_t* const w = static_cast<const uint16_t*>(p.weight) + (id - p.first_id) * p.weight_stride;
  const float t = p.dtype == ISOBIT_BF16 ? numerics::hopper_dot<numerics::Bf16>(h, w, p.width)
                                         : numerics::hopper_dot<numerics::Fp16>(h, w, p.width);
  const float bias = p.bias != nullptr ? bias_of(p, id) : 0.0f;
  return finish_logit(t, p.bias != nullptr ? &bias : nullptr, p.softcap, temperature);
}

}  // namespace isobit::linear_logp::cpu
