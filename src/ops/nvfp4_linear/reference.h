// The slow oracle: the product in fp64 from the formats' values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isobit::nvfp4_linear {

// out [rows, columns] of x [rows, k] and weight [columns, k], both already decoded to their values.
std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& weight, int64_t rows,
                              int64_t columns, int64_t k);

}  // namespace isobit::nvfp4_linear
