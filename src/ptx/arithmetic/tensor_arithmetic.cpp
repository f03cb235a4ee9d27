#include "ptx/arithmetic/tensor_arithmetic.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "numerics/bits.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"

namespace isobit::ptx {
namespace {

constexpr int kBlocks = 4, kBlock = 16, kRowBytes = 32, kK = kBlocks * kBlock;

// d + sum rounded once to fp32; `sum` is exact. A double holds two bits more than the fp32 result needs: if its own
// rounding is turned into a sticky last bit, the second rounding is right.
float add_once(float d, double sum) {
  const double s = d + sum, back = s - d;
  const double lost = (d - (s - back)) + (sum - back);
  if (lost == 0 || !std::isfinite(s)) return static_cast<float>(s);
  uint64_t bits = std::bit_cast<uint64_t>(s);
  const bool away = (lost > 0) == (s > 0);  // the exact value lies further from zero
  if (!(bits & 1)) bits += away ? 1 : uint64_t(-1);
  return static_cast<float>(std::bit_cast<double>(bits));
}

// Twice the values, which are integers.
constexpr auto kTwice = [] {
  std::array<int16_t, 16> table{};
  for (size_t code = 0; code < table.size(); ++code)
    table[code] = static_cast<int16_t>(2 * numerics::e2m1_to_float(static_cast<uint8_t>(code)));
  return table;
}();

void decode_row(const uint8_t* codes, int16_t* out, int step) {
  for (int k = 0; k < kK; ++k) out[k * step] = kTwice[codes[k / 2] >> k % 2 * 4 & 15];
}

float scale_of(uint32_t codes, int block) {
  return numerics::e4m3_to_float(static_cast<uint8_t>(codes >> 8 * block & 0x7F));
}

constexpr int kColumns = 32;

// Some rows of B, element by element beside each other.
struct Columns {
  int16_t b[kK][kColumns] = {};
  float scales[kBlocks][kColumns] = {};

  void decode(const ScaledMmaTile& t, int first, int count) {
    for (int j = 0; j < count; ++j) {
      decode_row(t.b + (first + j) * kRowBytes, &b[0][j], kColumns);
      for (int block = 0; block < kBlocks; ++block) scales[block][j] = scale_of(t.b_scales[first + j], block);
    }
  }

  // A dot product in quarters has 12 bits and a product of scales 8: their product is exact in fp32, and the four
  // products of a row, multiples of 2^-20 below 2^27, are exact in a double.
  void add_block(const int16_t (&a)[kK], float a_scale, int block, double (&sums)[kColumns]) const {
    int16_t dots[kColumns] = {};
    for (int k = block * kBlock; k < (block + 1) * kBlock; ++k) {
      for (int j = 0; j < kColumns; ++j) dots[j] = static_cast<int16_t>(dots[j] + a[k] * b[k][j]);
    }
    const float quarter = a_scale * 0.25f;
    for (int j = 0; j < kColumns; ++j)
      sums[j] += static_cast<double>(quarter * scales[block][j] * static_cast<float>(dots[j]));
  }
};

class ExactTensorArithmetic final : public TensorArithmetic {
 public:
  const char* name() const override { return "exact"; }

  void multiply(const MmaTile& tile) const override { exact_arithmetic().multiply(tile); }

  void multiply_scaled(const ScaledMmaTile& t) const override {
    for (int n = 0; n < t.n; n += kColumns) {
      const int count = std::min(kColumns, t.n - n);
      thread_local Columns b;
      b.decode(t, n, count);
      for (int m = 0; m < t.m; ++m) {
        int16_t a[kK];
        decode_row(t.a + m * kRowBytes, a, 1);
        double sums[kColumns] = {};
        for (int block = 0; block < kBlocks; ++block) b.add_block(a, scale_of(t.a_scales[m], block), block, sums);
        float* d = t.d + static_cast<int64_t>(m) * t.stride + n;
        for (int j = 0; j < count; ++j) d[j] = numerics::canonical_nan(add_once(d[j], sums[j]));
      }
    }
  }
};

}  // namespace

const TensorArithmetic& exact_tensor_arithmetic() {
  static const ExactTensorArithmetic arithmetic;
  return arithmetic;
}

}  // namespace isobit::ptx
