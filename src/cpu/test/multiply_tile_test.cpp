// Every SIMD target of the exact engine against the scalar model, compared as bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "cpu/test/mma_cases.h"
#include "cpu/test/test_targets.h"

namespace isobit::cpu::test {
namespace {

void check_case(const Case& c) {
  const std::vector<float> expected = expected_result(c);
  for_each_target([&] {
    const std::vector<float> got = multiply(c.row_matrix(), c.column_matrix(), c.start_data());
    EXPECT_EQ(count_differences(expected, got, c.v), 0);
  });
}

struct Setting {
  Format format;
  Distribution distribution;
};

std::string setting_name(const testing::TestParamInfo<Setting>& info) {
  std::string name = info.param.format == Format::kBf16 ? "bf16_" : "fp16_";
  for (const char* c = distribution_name(info.param.distribution); *c != 0; ++c) name += *c == ' ' ? '_' : *c;
  return name;
}

std::vector<Setting> all_settings() {
  std::vector<Setting> settings;
  for (const Format format : {Format::kBf16, Format::kFp16}) {
    for (const Distribution distribution : kDistributions) settings.push_back({format, distribution});
  }
  return settings;
}

class MultiplyTile : public testing::TestWithParam<Setting> {};

INSTANTIATE_TEST_SUITE_P(All, MultiplyTile, testing::ValuesIn(all_settings()), setting_name);

TEST_P(MultiplyTile, OneStepFromAnyStartValue) {
  std::mt19937_64 random(1);
  check_case(make_case(GetParam().distribution, GetParam().format, 37, 515, 16, true, &random));
}

TEST_P(MultiplyTile, ShortChains) {
  std::mt19937_64 random(2);
  check_case(make_case(GetParam().distribution, GetParam().format, 21, 130, 64, true, &random));
}

TEST_P(MultiplyTile, LongChains) {
  std::mt19937_64 random(3);
  check_case(make_case(GetParam().distribution, GetParam().format, 7, 131, 640, false, &random));
  check_case(make_case(GetParam().distribution, GetParam().format, 2, 65, 4096, true, &random));
}

TEST_P(MultiplyTile, RaggedShapes) {
  std::mt19937_64 random(4);
  for (const int64_t k : {1, 2, 7, 15, 17, 31, 33, 47, 100}) {
    for (const int64_t n : {1, 2, 3, 5, 8}) {
      for (const int64_t v : {1, 2, 31, 63, 64, 65, 127}) {
        SCOPED_TRACE(testing::Message() << "n " << n << " v " << v << " k " << k);
        check_case(make_case(GetParam().distribution, GetParam().format, n, v, k, (n + v) % 2 != 0, &random));
      }
    }
  }
}

// Any address, any stride: the same bits as from packed matrices.
TEST_P(MultiplyTile, StridesAndAddresses) {
  std::mt19937_64 random(5);
  const Case c = make_case(GetParam().distribution, GetParam().format, 6, 70, 49, false, &random);
  const std::vector<float> expected = expected_result(c);
  for (const int64_t stride : {49, 50, 64, 177, -49, -60}) {
    const size_t extent = static_cast<size_t>(std::abs(stride)) * 70;
    std::vector<uint16_t> rows(extent + 1, 0x7FFF);
    std::vector<uint16_t> columns(extent + 3, 0x7FFF);
    uint16_t* const first_row = rows.data() + 1 + (stride < 0 ? -stride * 5 : 0);
    uint16_t* const first_column = columns.data() + 3 + (stride < 0 ? -stride * 69 : 0);
    for (int64_t r = 0; r < 6; ++r) std::memcpy(first_row + r * stride, &c.rows[static_cast<size_t>(r * 49)], 98);
    for (int64_t j = 0; j < 70; ++j) {
      std::memcpy(first_column + j * stride, &c.columns[static_cast<size_t>(j * 49)], 98);
    }
    for_each_target([&] {
      const std::vector<float> got =
          multiply({first_row, 6, 49, stride, c.format}, {first_column, 70, 49, stride, c.format}, nullptr);
      EXPECT_EQ(count_differences(expected, got, 70), 0) << "stride " << stride;
    });
  }
}

}  // namespace
}  // namespace isobit::cpu::test
