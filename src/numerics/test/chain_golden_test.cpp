// Whole chains against what an H200 computed: 256 rows by 64 columns each at K = 640 and K = 4096, and special values
// inside chains.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "numerics/hopper_mma.h"
#include "numerics/test/golden.h"
#include "numerics/test/golden_inputs.h"

namespace isobit::numerics::golden {
namespace {

class ChainGolden : public testing::TestWithParam<ChainCase> {};

template <class Format>
void compare(const ChainCase& chain, const std::vector<uint32_t>& z) {
  const Inputs inputs = make_inputs<Format>(chain);
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kColumns; ++n) {
      const auto at = static_cast<size_t>(r * kColumns + n);
      const float expected =
          hopper_chain<Format>(inputs.c[at], &inputs.a[static_cast<size_t>(r) * static_cast<size_t>(chain.k)],
                               &inputs.b[static_cast<size_t>(n) * static_cast<size_t>(chain.k)], chain.k);
      ASSERT_EQ(z[at], float_bits(expected)) << "row " << r << " column " << n;
    }
  }
}

TEST_P(ChainGolden, TheModelGivesTheDevicesBytes) {
  const ChainCase& chain = GetParam();
  FileHeader header;
  const auto z = read_outputs(std::string(ISOBIT_SOURCE_DIR) + "/src/numerics/test/golden", chain, &header);
  ASSERT_FALSE(z.empty()) << chain.name << ".bin is missing or is not this case";
  EXPECT_EQ(header.forms, kAllForms) << "some instruction form gave other bytes on the device";
  if (chain.fp16) {
    compare<Fp16>(chain, z);
  } else {
    compare<Bf16>(chain, z);
  }
}

std::string name_of(const testing::TestParamInfo<ChainCase>& chain) { return chain.param.name; }

INSTANTIATE_TEST_SUITE_P(H200, ChainGolden, testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace isobit::numerics::golden
