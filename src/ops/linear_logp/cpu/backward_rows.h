// From dot products to the gradients that the sums of the backward pass take.
#pragma once

#include "ops/linear_logp/cpu/backward_plan.h"

namespace isobit::linear_logp::cpu {

// Neither ignored nor without a valid target or temperature.
bool is_valid_row(const Params& p, int64_t row);

RowGradient row_gradient(const BackwardParams& p, void* saved, int64_t row);

// A tile of dot products of rows and ids, and where its gradients go; strides in elements.
struct GradientTile {
  const RowGradient* rows;
  int64_t row_count;
  IdRange ids;
  const float* dot;
  int64_t dot_row_stride, dot_id_stride;
  uint16_t* dt;
  int64_t dt_row_stride, dt_id_stride;
};

void form_gradients(const BackwardParams& p, const GradientTile& tile);

// x in the output's dtype.
void write_gradient(const GradientOutput& out, int64_t offset, float x);

}  // namespace isobit::linear_logp::cpu
