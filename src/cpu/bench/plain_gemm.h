// The yardstick: an ordinary fp32 GEMM on bf16 operands with the exact engine's blocking (tiles of 64 columns, columns
// decoded tile by tile, rows decoded once), at one rounding per fma.
#pragma once

#include <cstdint>

namespace isobit::cpu::bench {

struct PlainProblem {
  const uint16_t* rows;     // [n, k]
  const uint16_t* columns;  // [v, k], v a multiple of 64, k of 16
  float* result;            // [n, v]
  float* decoded_rows;      // [n, k], scratch
  float* sums;              // [n, 64], scratch, 64-byte aligned
  int64_t n;
  int64_t v;
  int64_t k;
};

void plain_gemm_avx2(const PlainProblem& problem);
void plain_gemm_avx512(const PlainProblem& problem);

}  // namespace isobit::cpu::bench
