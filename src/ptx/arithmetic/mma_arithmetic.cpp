#include "ptx/arithmetic/mma_arithmetic.h"

#include <vector>

#include "cpu/mma/multiply_tile.h"
#include "numerics/bf16.h"
#include "numerics/bits.h"
#include "numerics/fp16.h"

namespace isobit::ptx {
namespace {

constexpr int kStep = 16;

// Through the CPU backend's exact engine, whose bits are tested against the scalar model and the GPU's golden files.
class HopperArithmetic final : public MmaArithmetic {
 public:
  const char* name() const override { return "hopper"; }

  void multiply(const MmaTile& t) const override {
    thread_local std::vector<std::byte> decoded, scratch;
    decoded.resize(cpu::decoded_rows_bytes(t.m, kStep));
    scratch.resize(cpu::tile_scratch_bytes(t.m));
    const cpu::Format format = t.format == MmaFormat::kBf16 ? cpu::Format::kBf16 : cpu::Format::kFp16;
    const cpu::Matrix16 a{t.a, t.m, kStep, kStep, format}, b{t.b, t.n, kStep, kStep, format};
    cpu::decode_rows(a, 0, t.m, decoded.data());
    for (int n = 0; n < t.n; n += cpu::kTileColumns) {
      const int columns = std::min(cpu::kTileColumns, t.n - n);
      cpu::multiply_tile(decoded.data(), t.m, b, n, columns, t.d + n, t.stride, scratch.data(), t.d + n);
    }
  }
};

// Sums in 80-bit extended precision: exact for integers and other data whose partial sums fit 64 bits, which is what
// tests of data movement use; otherwise the sum is rounded to 64 bits before it is rounded to fp32.
class ExactArithmetic final : public MmaArithmetic {
 public:
  const char* name() const override { return "exact"; }

  void multiply(const MmaTile& t) const override {
    t.format == MmaFormat::kBf16 ? run<numerics::Bf16>(t) : run<numerics::Fp16>(t);
  }

 private:
  template <class Format>
  static void run(const MmaTile& t) {
    for (int m = 0; m < t.m; ++m) {
      for (int n = 0; n < t.n; ++n) {
        float& d = t.d[static_cast<int64_t>(m) * t.stride + n];
        long double sum = d;
        for (int k = 0; k < kStep; ++k) {
          sum += static_cast<long double>(Format::to_float(t.a[m * kStep + k])) * Format::to_float(t.b[n * kStep + k]);
        }
        d = numerics::canonical_nan(static_cast<float>(sum));
      }
    }
  }
};

}  // namespace

const MmaArithmetic& hopper_arithmetic() {
  static const HopperArithmetic arithmetic;
  return arithmetic;
}

const MmaArithmetic& exact_arithmetic() {
  static const ExactArithmetic arithmetic;
  return arithmetic;
}

}  // namespace isobit::ptx
