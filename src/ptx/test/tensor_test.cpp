// Tensor memory and tcgen05.
#include <gtest/gtest.h>

#include "ptx/test/tensor_tile.h"

namespace isobit::ptx::test {
namespace {

class TensorTile : public testing::TestWithParam<TileKind> {};

TEST_P(TensorTile, GivesTheExactProductInEverySchedule) {
  const std::string text = tile_text(GetParam());
  for (const ScheduleCase& schedule : kScheduleCases) {
    const TileResult result = run_tile(text, GetParam(), schedule);
    ASSERT_EQ(result.error, "");
    EXPECT_EQ(result.report.text(), "") << schedule.name;
    EXPECT_EQ(result.out, tile_expected(GetParam())) << schedule.name;
    EXPECT_EQ(result.report.statistics.mma, 8u);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TensorTile, testing::Values(TileKind::kNvfp4, TileKind::kBf16));

}  // namespace
}  // namespace isobit::ptx::test
