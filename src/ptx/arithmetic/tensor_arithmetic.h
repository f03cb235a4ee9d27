// How tcgen05.mma computes d += a . b over one instruction's k step.
#pragma once
#include <cstdint>

#include "ptx/arithmetic/mma_arithmetic.h"

namespace isobit::ptx {

// d[m][n] += sum over four blocks of a_scale[m][block] * b_scale[n][block] * (a[m] . b[n] over the block's 16
// elements).
struct ScaledMmaTile {
  int m = 0, n = 0;
  const uint8_t* a = nullptr;  // rows of 32 bytes: 64 E2M1 codes, the element of even index in the low nibble
  const uint8_t* b = nullptr;
  const uint32_t* a_scales = nullptr;  // four UE4M3 codes a row, the first block's lowest
  const uint32_t* b_scales = nullptr;
  float* d = nullptr;
  int stride = 0;
};

class TensorArithmetic {
 public:
  virtual ~TensorArithmetic() = default;
  virtual const char* name() const = 0;
  virtual void multiply(const MmaTile& tile) const = 0;
  virtual void multiply_scaled(const ScaledMmaTile& tile) const = 0;
};

// The exact sum of the addend and all products, rounded once to nearest. No rule of these tensor cores was measured:
// only results whose partial sums are all exact in fp32 may be compared bit for bit.
const TensorArithmetic& exact_tensor_arithmetic();

}  // namespace isobit::ptx
