#include "ops/linear_logp/cpu/backward_rows.h"

#include "ops/linear_logp/cpu/operands.h"
#include "ops/linear_logp/cpu/rows.h"
#include "ops/linear_logp/saved.h"

namespace isobit::linear_logp::cpu {
namespace {

// Sum of the row's d_logp over the targets with a logit whose id is `id` (same) or any other.
float sum_of(const BackwardParams& p, const RowGradient& row, int64_t id, bool same) {
  return sum_gradients(
      p.forward.targets, row.temperature, [&](int64_t k) { return p.d_logp.at(row.row, k); },
      [&](int64_t k) {
        const int64_t target = target_id(p.forward, row.row, k);
        return has_logit(p.forward, target) && (target == id) == same;
      });
}

template <bool kEntropy>
void form_tile(const BackwardParams& p, const GradientTile& tile) {
  const Params& f = p.forward;
  for (int64_t v = 0; v < tile.ids.size(); ++v) {
    const float bias = f.bias != nullptr ? bias_of(f, tile.ids.begin + v) : 0.0f;
    const float* const bias_or_null = f.bias != nullptr ? &bias : nullptr;
    for (int64_t r = 0; r < tile.row_count; ++r) {
      const RowGradient& row = tile.rows[r];
      const float t = tile.dot[r * tile.dot_row_stride + v * tile.dot_id_stride];
      const LogitAndSlope logit = finish_logit_and_slope(t, bias_or_null, f.softcap, row.temperature);
      const float dz = gradient_of_logit<kEntropy>(row.gradient, logit.z);
      tile.dt[r * tile.dt_row_stride + v * tile.dt_id_stride] = gradient_of_dot(dz, logit.slope, f.softcap);
    }
  }
  for (int64_t r = 0; r < tile.row_count; ++r) {
    const RowGradient& row = tile.rows[r];
    for (int64_t k = 0; k < f.targets; ++k) {
      const int64_t id = target_id(f, row.row, k);
      if (id < tile.ids.begin || id >= tile.ids.end || is_ignored(f, id)) continue;
      const int64_t v = id - tile.ids.begin;
      const float bias = f.bias != nullptr ? bias_of(f, id) : 0.0f;
      const float t = tile.dot[r * tile.dot_row_stride + v * tile.dot_id_stride];
      const LogitAndSlope logit =
          finish_logit_and_slope(t, f.bias != nullptr ? &bias : nullptr, f.softcap, row.temperature);
      const GradientTarget target = gradient_target(row.gradient, sum_of(p, row, id, true), sum_of(p, row, id, false));
      const float dz =
          gradient_of_target<kEntropy>(row.gradient, target, logit.z, id == row.record.lead, row.record.others);
      tile.dt[r * tile.dt_row_stride + v * tile.dt_id_stride] = gradient_of_dot(dz, logit.slope, f.softcap);
    }
  }
}

}  // namespace

bool is_valid_row(const Params& p, int64_t row) {
  return !is_ignored_row(p, row) && row_temperature(p, row) > 0.0f && !has_outside_target(p, row);
}

RowGradient row_gradient(const BackwardParams& p, void* saved, int64_t row) {
  RowGradient out{};
  out.row = row;
  out.temperature = row_temperature(p.forward, row);
  out.record = load_record(saved_arrays(saved, p.forward.rows), row);
  // No id is -1: every target with a logit counts.
  out.gradient = gradient_row(out.record.row, out.temperature, sum_of(p, out, -1, false), p.d_lse.at(row),
                              p.d_entropy.at(row), static_cast<bool>(p.d_entropy));
  return out;
}

void form_gradients(const BackwardParams& p, const GradientTile& tile) {
  p.d_entropy ? form_tile<true>(p, tile) : form_tile<false>(p, tile);
}

void write_gradient(const GradientOutput& out, int64_t offset, float x) {
  if (out.dtype == ISOBIT_FP32) {
    static_cast<float*>(out.data)[offset] = numerics::canonical_nan(x);
  } else {
    static_cast<uint16_t*>(out.data)[offset] = numerics::bf16_from_float(x);
  }
}

}  // namespace isobit::linear_logp::cpu
