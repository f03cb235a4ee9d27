// NaN, infinities, overflow, signed zeros and the ends of the formats, on every SIMD target.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "cpu/test/mma_cases.h"
#include "cpu/test/test_targets.h"
#include "numerics/bits.h"

namespace isobit::cpu::test {
namespace {

using numerics::bits_float;
using numerics::float_bits;

const std::vector<uint16_t> kBf16Elements = {0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x3F80, 0xBF80, 0x3FC1,
                                             0x1F80, 0x2000, 0x5F80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFF81};
const std::vector<uint16_t> kFp16Elements = {0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x3E01,
                                             0x1400, 0x2000, 0x7800, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFC01};
constexpr uint32_t kStarts[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000,
                                0x3F800000, 0xBF800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F000000, 0x7F800000,
                                0xFF800000, 0x7FC00000, 0xFF800001, 0x7FFFFFFF};

const std::vector<uint16_t>& elements(Format format) { return format == Format::kBf16 ? kBf16Elements : kFp16Elements; }

void check_case(const Case& c) {
  const std::vector<float> expected = expected_result(c);
  for_each_target([&] {
    EXPECT_EQ(count_differences(expected, multiply(c.row_matrix(), c.column_matrix(), c.start_data()), c.v), 0);
  });
}

class MmaSpecial : public testing::TestWithParam<Format> {};

std::string format_name(const testing::TestParamInfo<Format>& format) {
  return format.param == Format::kBf16 ? "bf16" : "fp16";
}

INSTANTIATE_TEST_SUITE_P(Formats, MmaSpecial, testing::Values(Format::kBf16, Format::kFp16), format_name);

// Every pair of special elements, at every place of a group, beside ones or beside zeros, from every start value.
TEST_P(MmaSpecial, EveryPairAtEveryPlace) {
  const std::vector<uint16_t>& list = elements(GetParam());
  const uint16_t one = GetParam() == Format::kBf16 ? 0x3F80 : 0x3C00;
  const int64_t count = static_cast<int64_t>(list.size());
  size_t start = 0;
  for (int place = 0; place < 32; ++place) {
    const uint16_t rest = place % 2 != 0 ? one : 0;
    Case c{GetParam(), count, count, 32, {}, {}, {}};
    c.rows.assign(static_cast<size_t>(count * 32), rest);
    c.columns.assign(static_cast<size_t>(count * 32), rest);
    for (size_t i = 0; i < list.size(); ++i) {
      c.rows[i * 32 + static_cast<size_t>(place)] = list[i];
      c.columns[i * 32 + static_cast<size_t>(place)] = list[i];
    }
    for (int64_t i = 0; i < count * count; ++i) c.start.push_back(bits_float(kStarts[start++ % std::size(kStarts)]));
    SCOPED_TRACE(place);
    check_case(c);
  }
}

// Three special products in one group.
TEST_P(MmaSpecial, ProductsThatMeet) {
  const std::vector<uint16_t>& list = elements(GetParam());
  std::mt19937_64 random(6);
  for (int round = 0; round < 8; ++round) {
    Case c{GetParam(), 40, 130, 48, {}, {}, {}};
    for (int64_t i = 0; i < c.n * c.k; ++i) c.rows.push_back(random() % 8 == 0 ? list[random() % list.size()] : 0);
    for (int64_t i = 0; i < c.v * c.k; ++i) c.columns.push_back(random() % 2 == 0 ? list[random() % list.size()] : 0);
    for (int64_t i = 0; i < c.n * c.v; ++i) c.start.push_back(bits_float(kStarts[random() % std::size(kStarts)]));
    check_case(c);
  }
}

// One output whose products are pairs[i].first * pairs[i].second.
float single(float start, std::initializer_list<std::pair<uint16_t, uint16_t>> pairs) {
  std::vector<uint16_t> row;
  std::vector<uint16_t> column;
  for (const auto& [a, b] : pairs) {
    row.push_back(a);
    column.push_back(b);
  }
  const int64_t k = static_cast<int64_t>(row.size());
  return multiply({row.data(), 1, k, k, Format::kBf16}, {column.data(), 1, k, k, Format::kBf16}, &start)[0];
}

constexpr uint16_t kLargest = 0x7F7F;
constexpr uint16_t kOne = 0x3F80;
constexpr float kFloatMax = std::numeric_limits<float>::max();

// Facts measured on an H200 (2026-11-29).
TEST(MmaFacts, SeenOnAnH200) {
  for_each_target([&] {
    EXPECT_EQ(float_bits(single(-0.0f, {{0x8000, kOne}})), 0u);
    EXPECT_EQ(float_bits(single(1.0f, {{0xBF80, kOne}})), 0u);
    EXPECT_EQ(float_bits(single(0.0f, {{kLargest, kLargest}, {kLargest, 0xFF7F}})), 0u);
    EXPECT_EQ(float_bits(single(0.0f, {{kLargest, kLargest}})), 0x7F800000u);
    EXPECT_EQ(float_bits(single(-kFloatMax, {{kLargest, 0x4000}})), float_bits(0x1.fc0002p127f));
    EXPECT_EQ(float_bits(single(0.0f, {{0x7F80, 0}})), 0x7FFFFFFFu);
    EXPECT_EQ(float_bits(single(0.0f, {{0x7F80, kOne}, {0xFF80, kOne}})), 0x7FFFFFFFu);
    EXPECT_EQ(float_bits(single(bits_float(0xFFC00001u), {{kOne, kOne}})), 0x7FFFFFFFu);
    EXPECT_EQ(float_bits(single(0.0f, {{0x0001, 0x3080}})), 0u);  // 2^-133 * 2^-30
    EXPECT_EQ(float_bits(single(0.0f, {{0x0001, 0x3780}})), 1u);  // 2^-133 * 2^-16 = 2^-149
    EXPECT_EQ(float_bits(single(0.0f, {{0x0001, 0x3700}})), 0u);  // 2^-150
  });
}

}  // namespace
}  // namespace isobit::cpu::test
