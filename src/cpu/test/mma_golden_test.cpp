// The exact engine against what an H200 computed (src/numerics/test/golden), on every SIMD target: single steps, and
// chains of K = 640 and 4096, special values among them.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "cpu/test/mma_cases.h"
#include "cpu/test/test_targets.h"
#include "numerics/test/golden.h"
#include "numerics/test/golden_inputs.h"

namespace isobit::cpu::test {
namespace {

// Tiles of 16 rows x 8 columns x 16 products.
struct Steps {
  int32_t tiles = 0;
  std::vector<uint16_t> rows;
  std::vector<uint16_t> columns;
  std::vector<float> start;
  std::vector<float> result;
};

template <class T>
bool read_array(std::FILE* file, size_t count, std::vector<T>* out) {
  out->resize(count);
  return std::fread(out->data(), sizeof(T), count, file) == count;
}

const std::string kDirectory = std::string(ISOBIT_SOURCE_DIR) + "/src/numerics/test/golden";

Steps read_steps(const std::string& name) {
  const std::string path = kDirectory + "/" + name;
  Steps steps;
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return steps;
  int32_t tiles = 0;
  if (std::fread(&tiles, sizeof tiles, 1, file) == 1 && tiles > 0) {
    const size_t count = static_cast<size_t>(tiles);
    const bool read = read_array(file, count * 256, &steps.rows) && read_array(file, count * 128, &steps.columns) &&
                      read_array(file, count * 128, &steps.start) && read_array(file, count * 128, &steps.result);
    if (read) steps.tiles = tiles;
  }
  std::fclose(file);
  return steps;
}

void check_steps(const std::string& name, Format format) {
  const Steps steps = read_steps(name);
  ASSERT_GT(steps.tiles, 0) << name;
  for_each_target([&] {
    for (size_t tile = 0; tile < static_cast<size_t>(steps.tiles); ++tile) {
      const std::vector<float> got =
          multiply({&steps.rows[tile * 256], 16, 16, 16, format}, {&steps.columns[tile * 128], 8, 16, 16, format},
                   &steps.start[tile * 128]);
      const std::vector<float> expected(&steps.result[tile * 128], &steps.result[tile * 128] + 128);
      ASSERT_EQ(count_differences(expected, got, 8), 0) << "tile " << tile;
    }
  });
}

TEST(MmaGolden, Bf16Steps) { check_steps("step_bf16.bin", Format::kBf16); }
TEST(MmaGolden, Fp16Steps) { check_steps("step_fp16.bin", Format::kFp16); }

class MmaGoldenChain : public testing::TestWithParam<numerics::golden::ChainCase> {};

std::string chain_name(const testing::TestParamInfo<numerics::golden::ChainCase>& chain) { return chain.param.name; }

INSTANTIATE_TEST_SUITE_P(H200, MmaGoldenChain, testing::ValuesIn(numerics::golden::kCases), chain_name);

TEST_P(MmaGoldenChain, HasTheBitsOfTheH200) {
  namespace golden = numerics::golden;
  const golden::ChainCase& chain = GetParam();
  golden::FileHeader header;
  const std::vector<uint32_t> outputs = golden::read_outputs(kDirectory, chain, &header);
  ASSERT_EQ(outputs.size(), static_cast<size_t>(golden::kRows * golden::kColumns)) << chain.name;
  // A quarter of the rows of the long chains: under emulation they take most of the suite's time.
  const int64_t row_count = chain.k > 640 ? golden::kRows / 4 : golden::kRows;
  std::vector<float> expected;
  for (int64_t i = 0; i < row_count * golden::kColumns; ++i) {
    expected.push_back(numerics::bits_float(outputs[static_cast<size_t>(i)]));
  }
  const golden::Inputs inputs =
      chain.fp16 ? golden::make_inputs<numerics::Fp16>(chain) : golden::make_inputs<numerics::Bf16>(chain);
  const Format format = chain.fp16 ? Format::kFp16 : Format::kBf16;
  const Matrix16 rows = {inputs.a.data(), row_count, chain.k, chain.k, format};
  const Matrix16 columns = {inputs.b.data(), golden::kColumns, chain.k, chain.k, format};
  for_each_target(
      [&] { EXPECT_EQ(count_differences(expected, multiply(rows, columns, inputs.c.data()), golden::kColumns), 0); });
}

}  // namespace
}  // namespace isobit::cpu::test
