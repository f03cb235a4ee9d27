// How a matrix instruction computes d = c + a . b over one k step. Instructions unpack their operands and leave the
// arithmetic here.
#pragma once
#include <cstdint>

namespace isobit::ptx {

enum class MmaFormat : uint8_t { kBf16, kFp16 };

// d[m][n] += sum over 16 of a[m][k] * b[n][k]; rows of a and b are 16 elements, rows of d are `stride` floats.
struct MmaTile {
  MmaFormat format = MmaFormat::kBf16;
  int m = 0, n = 0;
  const uint16_t* a = nullptr;
  const uint16_t* b = nullptr;
  float* d = nullptr;
  int stride = 0;
};

class MmaArithmetic {
 public:
  virtual ~MmaArithmetic() = default;
  virtual const char* name() const = 0;
  virtual void multiply(const MmaTile& tile) const = 0;
};

// The measured rule of Hopper's tensor cores (docs/bit-contract.md).
const MmaArithmetic& hopper_arithmetic();
// The exact sum of the seventeen terms, rounded once to nearest.
const MmaArithmetic& exact_arithmetic();

}  // namespace isobit::ptx
