// Shapes that nvfp4_quantize's figures are quoted at.
#pragma once

#include <cstdint>

namespace isobit::nvfp4_quantize {

struct BenchShape {
  int64_t m, k;
};

// Activations in front of gate and up and of down of pi0.5's language model, and a large one.
inline constexpr BenchShape kShapes[] = {{784, 2048}, {968, 2048}, {784, 16384}, {968, 16384}, {8192, 16384}};

}  // namespace isobit::nvfp4_quantize
