// The operands of the kernels in mma_chains.cuh and tensor_chains.cuh.
#pragma once

#include <cstdint>

namespace isobit::device {

// d[m][n] = the chain over A[m][k] B[n][k] from c[m][n]; element (m, n) of c and d lies at m * stride_m + n * stride_n.
struct MmaChains {
  const uint16_t* a;  // [m][k]
  const uint16_t* b;  // [n][k]
  const float* c;
  float* d;
  int m;
  int n;
  int k;
  int stride_m;
  int stride_n;
};

}  // namespace isobit::device
