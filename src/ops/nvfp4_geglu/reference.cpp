#include "ops/nvfp4_geglu/reference.h"

#include <cmath>

namespace isobit::nvfp4_geglu {
namespace {

double gelu_of(double a, isobit_gelu form) {
  if (form == ISOBIT_GELU_ERF) return a * std::erfc(-a / std::sqrt(2.0)) / 2;
  constexpr double kPi = 3.14159265358979323846;
  const double u = std::sqrt(2 / kPi) * (a + 0.044715 * a * a * a);
  return a * (1 + std::tanh(u)) / 2;
}

double dot(const double* a, const double* b, int64_t k) {
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& weight, int64_t rows,
                              int64_t width, int64_t k, double gate_scale, double up_scale, isobit_gelu gelu) {
  std::vector<double> hidden(static_cast<size_t>(rows * width));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      const double* const a = x.data() + row * k;
      const double gate = dot(a, weight.data() + 2 * i * k, k) * gate_scale;
      const double up = dot(a, weight.data() + (2 * i + 1) * k, k) * up_scale;
      hidden[static_cast<size_t>(row * width + i)] = gelu_of(gate, gelu) * up;
    }
  }
  return hidden;
}

}  // namespace isobit::nvfp4_geglu
