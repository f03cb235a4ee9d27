// What multiply_tile promises besides its values: independence of splits and threads, the caller's memory and modes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cstring>

#include "cpu/parallel_for.h"
#include "cpu/test/mma_cases.h"
#include "cpu/test/test_targets.h"
#include "numerics/bits.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace isobit::cpu::test {
namespace {

Case random_case(Format format, int64_t n, int64_t v, int64_t k) {
  std::mt19937_64 random(7);
  return make_case(Distribution::kSparseSpecials, format, n, v, k, true, &random);
}

// The product in blocks of rows and columns, on several threads.
std::vector<float> multiply_in_blocks(const Case& c, int64_t block_rows, int block_columns, int threads) {
  std::vector<float> result(static_cast<size_t>(c.n * c.v), -7.0f);
  const int64_t row_blocks = (c.n + block_rows - 1) / block_rows;
  const int64_t column_blocks = (c.v + block_columns - 1) / block_columns;
  parallel_for(row_blocks * column_blocks, threads, [&](int64_t block, int) {
    const int64_t row = block / column_blocks * block_rows;
    const int64_t column = block % column_blocks * block_columns;
    const int64_t rows = std::min(block_rows, c.n - row);
    const int columns = static_cast<int>(std::min<int64_t>(block_columns, c.v - column));
    std::vector<char> decoded(decoded_rows_bytes(rows, c.k));
    std::vector<char> scratch(tile_scratch_bytes(rows));
    decode_rows(c.row_matrix(), row, rows, decoded.data());
    const int64_t at = row * c.v + column;
    multiply_tile(decoded.data(), rows, c.column_matrix(), column, columns, result.data() + at, c.v, scratch.data(),
                  c.start_data() + at);
  });
  return result;
}

TEST(MmaContract, BitsDoNotDependOnTheSplit) {
  for (const Format format : {Format::kBf16, Format::kFp16}) {
    const Case c = random_case(format, 7, 70, 50);
    const std::vector<float> expected = expected_result(c);
    for_each_target([&] {
      for (const int64_t rows : {1, 2, 5}) {
        for (const int columns : {1, 17, 64}) {
          for (const int threads : {1, 3}) {
            EXPECT_EQ(count_differences(expected, multiply_in_blocks(c, rows, columns, threads), c.v), 0)
                << rows << " rows, " << columns << " columns, " << threads << " threads";
          }
        }
      }
    });
  }
}

// Fewer rows than were decoded, the result in place of the start values.
TEST(MmaContract, PartOfTheRowsInPlace) {
  const Case c = random_case(Format::kBf16, 9, 64, 70);
  const std::vector<float> expected = expected_result(c);
  std::vector<char> decoded(decoded_rows_bytes(c.n, c.k));
  decode_rows(c.row_matrix(), 0, c.n, decoded.data());
  for_each_target([&] {
    for (int64_t rows = 1; rows <= c.n; ++rows) {
      std::vector<float> result = c.start;
      std::vector<char> scratch(tile_scratch_bytes(rows));
      multiply_tile(decoded.data(), rows, c.column_matrix(), 0, 64, result.data(), c.v, scratch.data(), result.data());
      const size_t written = static_cast<size_t>(rows * c.v);
      EXPECT_EQ(std::memcmp(result.data(), expected.data(), written * sizeof(float)), 0) << rows;
      EXPECT_EQ(
          std::memcmp(result.data() + written, c.start.data() + written, (c.start.size() - written) * sizeof(float)),
          0);
    }
  });
}

// Every misalignment of the working memory; not a byte beyond it or beside the result is touched.
TEST(MmaContract, StaysInsideItsMemory) {
  constexpr size_t kGuard = 128;
  constexpr char kPoison = 0x5A;
  const Case c = random_case(Format::kFp16, 5, 11, 37);
  const std::vector<float> expected = expected_result(c);
  const int64_t ldc = c.v + 3;
  for_each_target([&] {
    for (size_t shift = 0; shift < 64; shift += 7) {
      const size_t decoded_bytes = decoded_rows_bytes(c.n, c.k);
      const size_t scratch_bytes = tile_scratch_bytes(c.n);
      std::vector<char> decoded(decoded_bytes + 2 * kGuard, kPoison);
      std::vector<char> scratch(scratch_bytes + 2 * kGuard, kPoison);
      std::vector<float> result(static_cast<size_t>(c.n * ldc), 123.0f);
      std::vector<float> start(result.size());
      for (int64_t r = 0; r < c.n; ++r)
        std::copy_n(&c.start[static_cast<size_t>(r * c.v)], c.v, &start[static_cast<size_t>(r * ldc)]);
      char* const decoded_begin = decoded.data() + shift;
      char* const scratch_begin = scratch.data() + shift;
      decode_rows(c.row_matrix(), 0, c.n, decoded_begin);
      multiply_tile(decoded_begin, c.n, c.column_matrix(), 0, 11, result.data(), ldc, scratch_begin, start.data());
      const auto poisoned = [=](char byte) { return byte == kPoison; };
      EXPECT_TRUE(std::all_of(decoded.data(), decoded_begin, poisoned));
      EXPECT_TRUE(std::all_of(decoded_begin + decoded_bytes, decoded.data() + decoded.size(), poisoned));
      EXPECT_TRUE(std::all_of(scratch.data(), scratch_begin, poisoned));
      EXPECT_TRUE(std::all_of(scratch_begin + scratch_bytes, scratch.data() + scratch.size(), poisoned));
      for (int64_t r = 0; r < c.n; ++r) {
        const float* const row = &result[static_cast<size_t>(r * ldc)];
        EXPECT_EQ(std::memcmp(row, &expected[static_cast<size_t>(r * c.v)], sizeof(float) * 11), 0);
        EXPECT_TRUE(std::all_of(row + c.v, row + ldc, [](float x) { return x == 123.0f; }));
      }
    }
  });
}

TEST(MmaContract, NoProductsLeaveTheStartValues) {
  const float start[3] = {-0.0f, 1.5f, 2.5f};
  for_each_target([&] {
    const std::vector<float> with_start =
        multiply({nullptr, 1, 0, 0, Format::kBf16}, {nullptr, 3, 0, 0, Format::kBf16}, start);
    EXPECT_EQ(std::memcmp(with_start.data(), start, sizeof start), 0);
    const std::vector<float> without =
        multiply({nullptr, 1, 0, 0, Format::kFp16}, {nullptr, 3, 0, 0, Format::kFp16}, nullptr);
    for (const float value : without) EXPECT_EQ(numerics::float_bits(value), 0u);
    EXPECT_TRUE(multiply({nullptr, 0, 5, 5, Format::kBf16}, {nullptr, 0, 5, 5, Format::kBf16}, nullptr).empty());
  });
}

// A caller that rounds up and flushes subnormals gets the same bits and its own modes back.
TEST(MmaContract, CallersFloatingPointModes) {
  std::mt19937_64 random(8);
  for (const Format format : {Format::kBf16, Format::kFp16}) {
    const Case c = make_case(Distribution::kSubnormal, format, 4, 70, 48, true, &random);
    const std::vector<float> expected = expected_result(c);
    for_each_target([&] {
#if defined(__x86_64__)
      constexpr unsigned kUpFlushed = 0x1F80 | 0x4000 | 0x8040;
      const unsigned before = _mm_getcsr();
      _mm_setcsr(kUpFlushed);
      const std::vector<float> got = multiply(c.row_matrix(), c.column_matrix(), c.start_data());
      const unsigned after = _mm_getcsr();
      _mm_setcsr(before);
      EXPECT_EQ(after & ~0x3Fu, kUpFlushed);
#else
      std::fesetround(FE_UPWARD);
      const std::vector<float> got = multiply(c.row_matrix(), c.column_matrix(), c.start_data());
      const int after = std::fegetround();
      std::fesetround(FE_TONEAREST);
      EXPECT_EQ(after, FE_UPWARD);
#endif
      EXPECT_EQ(count_differences(expected, got, c.v), 0);
    });
  }
}

}  // namespace
}  // namespace isobit::cpu::test
