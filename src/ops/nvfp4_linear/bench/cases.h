// Shapes that nvfp4_linear's figures are quoted at.
#pragma once

#include <cstdint>

namespace isobit::nvfp4_linear {

struct BenchShape {
  int64_t m, n, k;
};

// Down projections of pi0.5's language model and of its action expert.
inline constexpr BenchShape kGpuShapes[] = {
    {784, 2048, 16384}, {816, 2048, 16384}, {880, 2048, 16384}, {968, 2048, 16384},
    {1, 2048, 16384},   {32, 2048, 16384},  {10, 1024, 4096},
};
// What two cores compute in seconds.
inline constexpr BenchShape kCpuShapes[] = {{1, 1024, 4096}, {10, 1024, 4096}, {64, 1024, 1024}};

}  // namespace isobit::nvfp4_linear
