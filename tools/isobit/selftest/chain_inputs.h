// The fixed dot products that tell one tensor-core rule from another: one k16 step d = c + sum of a[i] b[i] for every
// pair of a row and a column. Made by integer arithmetic, so every machine has the same ones.
//
//   random  rows by 16s: normal elements, exponents spread a little and a lot, a quarter zeros, c that cancels, values
//           near the smallest, a large c, infinities with NaN and overflow
//   bits    rows that isolate one bit: a large product, its negative, and one product 2^-k (k = 0 to 31) of either
//   sign,
//           at places that a step of 16, 8 or 4 products treats differently; and sums between two fp32 numbers
#pragma once

#include <isobit/isobit.h>

#include <cstdint>
#include <vector>

namespace isobit::cli {

enum class ChainSet { kRandom, kBits };

struct ChainInputs {
  static constexpr int kRows = 128, kColumns = 16, kDepth = 16;
  static constexpr int kVersion = 1;  // of the values below
  std::vector<uint16_t> a;            // [kRows][kDepth]
  std::vector<uint16_t> b;            // [kColumns][kDepth]
  std::vector<float> c;               // [kRows][kColumns]
};

ChainInputs chain_inputs(ChainSet set, isobit_dtype dtype);  // bf16 or fp16

}  // namespace isobit::cli
