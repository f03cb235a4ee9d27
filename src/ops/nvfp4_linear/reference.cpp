#include "ops/nvfp4_linear/reference.h"

namespace isobit::nvfp4_linear {

std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& weight, int64_t rows,
                              int64_t columns, int64_t k) {
  std::vector<double> out(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) {
        sum += x[static_cast<size_t>(row * k + i)] * weight[static_cast<size_t>(column * k + i)];
      }
      out[static_cast<size_t>(row * columns + column)] = sum;
    }
  }
  return out;
}

}  // namespace isobit::nvfp4_linear
