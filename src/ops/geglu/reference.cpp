#include "ops/geglu/reference.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "numerics/bf16.h"
#include "numerics/fp16.h"

namespace isobit::geglu {
namespace {

constexpr double kCubic = 0.044715;
const double kScale = std::sqrt(2.0 / std::numbers::pi);

double element(const Params& params, const Matrix& matrix, int64_t row, int64_t offset) {
  const int64_t index = row * matrix.row_stride + offset;
  switch (params.dtype) {
    case ISOBIT_BF16:
      return numerics::bf16_to_float(static_cast<const uint16_t*>(matrix.data)[index]);
    case ISOBIT_FP16:
      return numerics::fp16_to_float(static_cast<const uint16_t*>(matrix.data)[index]);
    default:
      return static_cast<const float*>(matrix.data)[index];
  }
}

}  // namespace

// a sigmoid(2u) and erfc instead of 1 + tanh u and 1 + erf: those cancel for negative a.
double reference_gelu(numerics::Gelu gelu, double a) {
  if (a == -std::numeric_limits<double>::infinity()) return -0.0;
  if (gelu == numerics::Gelu::kErf) return 0.5 * a * std::erfc(-a / std::numbers::sqrt2);
  return a / (1.0 + std::exp(-2.0 * kScale * (a + kCubic * a * a * a)));
}

double reference_slope(numerics::Gelu gelu, double a) {
  if (std::isinf(a)) return a > 0 ? 1.0 : 0.0;
  if (gelu == numerics::Gelu::kErf) {
    return 0.5 * std::erfc(-a / std::numbers::sqrt2) + a * std::exp(-0.5 * a * a) / std::sqrt(2.0 * std::numbers::pi);
  }
  const double u = kScale * (a + kCubic * a * a * a);
  const double s = 1.0 / (1.0 + std::exp(-2.0 * u));
  const double complement = 1.0 / (1.0 + std::exp(2.0 * u));
  if (complement == 0.0) return s;
  return s + 2.0 * a * s * complement * kScale * (1.0 + 3.0 * kCubic * a * a);
}

ReferenceElement reference_element(const Params& params, int64_t row, int64_t column) {
  const double a = element(params, params.gate, row, column * params.input_step);
  const double b = element(params, params.up, row, column * params.input_step);
  const double value = reference_gelu(params.gelu, a);
  if (!params.backward) return {value * b, 0.0, 0.0, 0.0};
  const double d = element(params, params.out, row, column);
  return {value * b, d * b * reference_slope(params.gelu, a), d * value, d * b};
}

}  // namespace isobit::geglu
