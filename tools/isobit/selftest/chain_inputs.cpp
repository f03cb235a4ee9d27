#include "selftest/chain_inputs.h"

#include <cstddef>

#include "numerics/bf16.h"
#include "numerics/bits.h"
#include "numerics/fp16.h"

namespace isobit::cli {
namespace {

using numerics::Bf16;
using numerics::bits_float;
using numerics::pow2;

constexpr int kDepth = ChainInputs::kDepth;

// SplitMix64 at a position.
uint64_t word(uint64_t stream, uint64_t index) {
  uint64_t x = stream * 0xD1342543DE82EF95u + (index + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Bell-shaped with deviation 1.15.
float bell(uint64_t bits) {
  const int64_t sum =
      static_cast<int64_t>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48));
  return static_cast<float>(sum - 2 * 0xFFFF) * 0x1p-15f;
}

// An exponent in [-spread, spread].
int spread_of(uint64_t bits, int spread) {
  return static_cast<int>(bits % (2 * static_cast<uint64_t>(spread) + 1)) - spread;
}

template <class Format>
class Maker {
 public:
  static constexpr bool kWide = Format::kExponentMask == 0xFF;  // bf16
  static constexpr uint16_t kInfinity = kWide ? 0x7F80 : 0x7C00;
  static constexpr uint16_t kLargest = kInfinity - 1;
  static constexpr uint16_t kSign = 0x8000;

  ChainInputs random() const {
    ChainInputs x = empty();
    for (int n = 0; n < ChainInputs::kColumns; ++n) {
      for (int i = 0; i < kDepth; ++i) {
        const auto at = static_cast<uint64_t>(n * kDepth + i);
        float value = bell(word(1, at));
        if (n % 4 == 1) value *= pow2(spread_of(word(2, at), 3));
        x.b[at] = Format::from_float(value);
      }
    }
    for (int r = 0; r < ChainInputs::kRows; ++r) {
      for (int i = 0; i < kDepth; ++i) x.a[static_cast<size_t>(r * kDepth + i)] = random_element(r / 16, r, i);
      for (int n = 0; n < ChainInputs::kColumns; ++n) set_c(&x, r / 16, r, n);
    }
    for (int r = 0; r < 16; ++r) make_special(&x, r);
    return x;
  }

  ChainInputs bits() const {
    ChainInputs x = empty();
    for (int n = 0; n < ChainInputs::kColumns; ++n) {
      for (int i = 0; i < kDepth; ++i) {
        const float value = i == 7 || i == 15 ? pow2(-n) : i == 6 || i == 14 ? 1.5f : 1.0f;
        x.b[static_cast<size_t>(n * kDepth + i)] = Format::from_float(value);
      }
    }
    for (int r = 0; r < ChainInputs::kRows; ++r) r < 80 ? make_bit(&x, r) : make_rounding(&x, r);
    return x;
  }

 private:
  static ChainInputs empty() {
    ChainInputs x;
    x.a.assign(static_cast<size_t>(ChainInputs::kRows) * kDepth, 0);
    x.b.assign(static_cast<size_t>(ChainInputs::kColumns) * kDepth, 0);
    x.c.assign(static_cast<size_t>(ChainInputs::kRows) * ChainInputs::kColumns, 0.0f);
    return x;
  }

  static uint16_t random_element(int kind, int r, int i) {
    const auto at = static_cast<uint64_t>(r * kDepth + i);
    const uint64_t bits = word(4, at);
    float value = bell(word(3, at));
    if (kind == 1) value *= pow2(spread_of(bits, kWide ? 6 : 4));
    if (kind == 2) value *= pow2(spread_of(bits, kWide ? 16 : 8));
    if (kind == 3 && bits % 4 == 0) value = 0;
    if (kind == 5) return static_cast<uint16_t>((bits & (kWide ? 0x03FF : 0x0FFF)) | (bits >> 32 & kSign));
    return Format::from_float(value);
  }

  static void set_c(ChainInputs* x, int kind, int r, int n) {
    const auto at = static_cast<size_t>(r * ChainInputs::kColumns + n);
    float& c = x->c[at];
    c = bell(word(5, at));
    if (kind == 3) c = 0;
    if (kind == 5) c = bits_float(static_cast<uint32_t>(word(6, at)) & 0x80FFFFFFu);
    if (kind == 6) c *= pow2(spread_of(word(6, at), 12) + 6);
    if (kind != 4) return;
    double sum = 0;
    for (int i = 0; i < kDepth; ++i) {
      sum += static_cast<double>(Format::to_float(x->a[static_cast<size_t>(r * kDepth + i)])) *
             static_cast<double>(Format::to_float(x->b[static_cast<size_t>(n * kDepth + i)]));
    }
    c = -static_cast<float>(sum);
  }

  // Row 112 + r of the random set.
  static void make_special(ChainInputs* x, int r) {
    uint16_t* const a = x->a.data() + static_cast<ptrdiff_t>(112 + r) * kDepth;
    float* const c = x->c.data() + static_cast<ptrdiff_t>(112 + r) * ChainInputs::kColumns;
    const auto set_all_c = [&](float value) {
      for (int n = 0; n < ChainInputs::kColumns; ++n) c[n] = value;
    };
    const auto set_all_a = [&](uint16_t value) {
      for (int i = 0; i < kDepth; ++i) a[i] = value;
    };
    constexpr float kMost = 0x1.fffffep127f;
    const float infinity = bits_float(0x7F800000u);
    if (r == 0) a[3] = 0x7FFF;
    if (r == 1) a[3] = kInfinity;
    if (r == 2) a[12] = kInfinity | kSign;
    if (r == 3) a[1] = a[14] = kInfinity;  // columns of equal and of opposite signs
    if (r == 4) set_all_a(kSign), set_all_c(-0.0f);
    if (r == 5) set_all_a(0), set_all_c(-0.0f);
    if (r == 6) a[2] = kLargest, a[3] = kLargest | kSign;
    if (r == 7) set_all_a(kLargest);
    if (r == 8) set_all_c(infinity);
    if (r == 9) a[5] = kInfinity, set_all_c(-infinity);
    if (r == 10) set_all_c(bits_float(0xFFC00001u));
    if (r == 11) set_all_a(0), set_all_c(bits_float(0x00012345u));
    if (r == 12) set_all_a(1), set_all_c(0.0f);
    if (r == 13) set_all_a(1 | kSign), set_all_c(bits_float(1u));
    if (r == 14) set_all_c(kMost);
    if (r == 15) set_all_c(-kMost), a[0] = kLargest;
  }

  // One product 2^-k beside two that cancel. Columns give k's low part, rows 16 more or none.
  static void make_bit(ChainInputs* x, int r) {
    struct Places {
      int large, negative, small;
    };
    // Factors of the weight side are 1 at 0 to 5 and 8 to 13, 3/2 at 6 and 14, 2^-n at 7 and 15. -1: c.
    constexpr Places kPlaces[] = {{0, 1, 7}, {0, 8, 7},  {0, 8, 15},  {8, 9, 7},  {8, 9, 15},
                                  {0, 4, 7}, {0, -1, 7}, {8, -1, 15}, {6, 14, 7}, {6, 14, 15}};
    const Places& at = kPlaces[r / 8];
    uint16_t* const a = x->a.data() + static_cast<ptrdiff_t>(r) * kDepth;
    const float large = at.large == 6 ? 1.5f : 1.0f;
    a[at.large] = Format::from_float(large);
    if (at.negative >= 0) a[at.negative] = Format::from_float(-large);
    const float small = (r & 1 ? 1.5f : 1.0f) * pow2(r & 2 ? -16 : 0);
    a[at.small] = Format::from_float(r & 4 ? -small : small);
    if (at.negative < 0) {
      for (int n = 0; n < ChainInputs::kColumns; ++n) x->c[static_cast<size_t>(r * ChainInputs::kColumns + n)] = -1.0f;
    }
  }

  // A sum that lies between two fp32 numbers: 1 plus or minus a few small products, c some of them.
  static void make_rounding(ChainInputs* x, int r) {
    uint16_t* const a = x->a.data() + static_cast<ptrdiff_t>(r) * kDepth;
    a[r % 6] = Format::from_float(r & 8 ? -1.0f : 1.0f);
    const float small = (1.0f + static_cast<float>(r % 7) * 0.125f) * pow2(-10 - r % 3);
    a[7] = Format::from_float(r & 1 ? -small : small);
    a[15] = Format::from_float(r & 2 ? small : -small * 0.5f);
    for (int n = 0; n < ChainInputs::kColumns; ++n) {
      const float c = pow2(-14 - n) * static_cast<float>(1 + r % 5);
      x->c[static_cast<size_t>(r * ChainInputs::kColumns + n)] = r & 4 ? -c : c;
    }
  }
};

template <class Format>
ChainInputs make(ChainSet set) {
  const Maker<Format> maker;
  return set == ChainSet::kRandom ? maker.random() : maker.bits();
}

}  // namespace

ChainInputs chain_inputs(ChainSet set, isobit_dtype dtype) {
  return dtype == ISOBIT_BF16 ? make<Bf16>(set) : make<numerics::Fp16>(set);
}

}  // namespace isobit::cli
