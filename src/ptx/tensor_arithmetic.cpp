#include "ptx/tensor_arithmetic.h"

#include <bit>
#include <cmath>
#include <vector>

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
void decode_row(const uint8_t* codes, int16_t* out, int step) {
  for (int k = 0; k < kK; ++k)
    out[k * step] = static_cast<int16_t>(2 * numerics::e2m1_to_float(codes[k / 2] >> (k & 1) * 4 & 15));
}

float scale_of(uint32_t codes, int block) {
  return numerics::e4m3_to_float(static_cast<uint8_t>(codes >> 8 * block & 0x7F));
}

class ExactTensorArithmetic final : public TensorArithmetic {
 public:
  const char* name() const override { return "exact"; }

  void multiply(const MmaTile& tile) const override { exact_arithmetic().multiply(tile); }

  void multiply_scaled(const ScaledMmaTile& t) const override {
    const size_t n = static_cast<size_t>(t.n);
    thread_local std::vector<int16_t> b, dots;
    thread_local std::vector<float> scales;
    thread_local std::vector<double> sums;
    b.resize(kK * n);
    dots.resize(n);
    scales.resize(kBlocks * n);
    sums.resize(n);
    for (size_t j = 0; j < n; ++j) {
      decode_row(t.b + j * kRowBytes, b.data() + j, t.n);
      for (int block = 0; block < kBlocks; ++block)
        scales[static_cast<size_t>(block) * n + j] = scale_of(t.b_scales[j], block);
    }
    for (int m = 0; m < t.m; ++m) {
      int16_t a[kK];
      decode_row(t.a + m * kRowBytes, a, 1);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int block = 0; block < kBlocks; ++block) {
        std::fill(dots.begin(), dots.end(), int16_t{0});
        for (int k = block * kBlock; k < (block + 1) * kBlock; ++k) {
          const int16_t* row = b.data() + static_cast<size_t>(k) * n;
          for (size_t j = 0; j < n; ++j) dots[j] = static_cast<int16_t>(dots[j] + a[k] * row[j]);
        }
        // A dot product in quarters has 12 bits and a product of scales 8: their product is exact in fp32, and the four
        // products, of multiples of 2^-20 below 2^27, are exact in a double.
        const float scale = scale_of(t.a_scales[m], block) * 0.25f;
        const float* other = scales.data() + static_cast<size_t>(block) * n;
        for (size_t j = 0; j < n; ++j) sums[j] += static_cast<double>(scale * other[j] * static_cast<float>(dots[j]));
      }
      float* d = t.d + static_cast<int64_t>(m) * t.stride;
      for (size_t j = 0; j < n; ++j) d[j] = numerics::canonical_nan(add_once(d[j], sums[j]));
    }
  }
};

}  // namespace

const TensorArithmetic& exact_tensor_arithmetic() {
  static const ExactTensorArithmetic arithmetic;
  return arithmetic;
}

}  // namespace isobit::ptx
