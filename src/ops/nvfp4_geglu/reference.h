// The slow oracle: the hidden activation in fp64, not quantised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "isobit/geglu.h"

namespace isobit::nvfp4_geglu {

// hidden [rows, width] of x [rows, k] and weight [2 width, k] (rows gate 0, up 0, gate 1, ...), decoded to their values
// without the global scale, which is `gate_scale` for even and `up_scale` for odd rows (that of x included).
std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& weight, int64_t rows,
                              int64_t width, int64_t k, double gate_scale, double up_scale, isobit_gelu gelu);

}  // namespace isobit::nvfp4_geglu
