// How a launch of the WGMMA product is cut into tiles.
#include <gtest/gtest.h>

#include <random>

#include "nvfp4/wgmma_launch.h"

namespace isobit {
namespace {

Nvfp4Variant variant_of(int tokens, int last_tokens) {
  Nvfp4Variant variant = {};
  variant.tokens = tokens;
  variant.last_tokens = last_tokens;
  variant.groups = 2;
  variant.steps_multiple = 1;
  return variant;
}

int64_t rounds_of(const Nvfp4Tiles& tiles, int multiprocessors) {
  return (tiles.count() + multiprocessors - 1) / multiprocessors;
}

TEST(Nvfp4Tiles, TheLastRoundIsCutIntoSmallerOnes) {
  // 1,024 tiles are seven rounds of 132 and 100 more; in tiles of 160 tokens those are 125.
  const Nvfp4Tiles tiles = tile_nvfp4(variant_of(200, 160), 784, 32768, 132);
  EXPECT_EQ(tiles.token_tiles, 4);
  EXPECT_EQ(tiles.row_tiles, 231);
  EXPECT_EQ(tiles.last_token_tiles, 5);
  EXPECT_EQ(tiles.last_row_tiles, 25);
}

TEST(Nvfp4Tiles, AFullLastRoundIsNot) {
  EXPECT_EQ(tile_nvfp4(variant_of(200, 160), 784, 33 * 128, 132).last_row_tiles, 0);  // one round
  EXPECT_EQ(tile_nvfp4(variant_of(200, 160), 784, 66 * 128, 132).last_row_tiles, 0);  // two full ones
  EXPECT_EQ(tile_nvfp4(variant_of(200, 0), 784, 32768, 132).last_row_tiles, 0);       // no smaller tiles
}

TEST(Nvfp4Tiles, EveryOutputOnceAndNoRoundMore) {
  std::mt19937 random(1);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  int cut = 0;
  for (int i = 0; i < 20000; ++i) {
    const int tokens = 8 * static_cast<int>(2 + below(31));
    const Nvfp4Variant variant = variant_of(tokens, 8 * static_cast<int>(1 + below(tokens / 8 - 1)));
    const int64_t rows = 1 + below(2000), columns = 2 * (1 + below(40000));
    const int multiprocessors = 1 + static_cast<int>(below(200));
    const Nvfp4Tiles tiles = tile_nvfp4(variant, rows, columns, multiprocessors);
    const Nvfp4Tiles full = tile_nvfp4(variant_of(tokens, 0), rows, columns, multiprocessors);
    ASSERT_EQ(tiles.row_tiles + tiles.last_row_tiles, full.row_tiles);
    ASSERT_EQ(tiles.token_tiles, full.token_tiles);
    ASSERT_GE(tiles.token_tiles * variant.tokens, rows);
    ASSERT_EQ(tiles.last_row_tiles > 0, tiles.last_token_tiles > 0);
    ASSERT_EQ(rounds_of(tiles, multiprocessors), rounds_of(full, multiprocessors));
    if (tiles.last_row_tiles == 0) continue;
    ++cut;
    ASSERT_GE(tiles.last_token_tiles * variant.last_tokens, rows);
    // A block's last tile is a small one: nobody does as many full tiles as there are rounds.
    ASSERT_LE(tiles.token_tiles * tiles.row_tiles, (rounds_of(tiles, multiprocessors) - 1) * multiprocessors);
  }
  EXPECT_GT(cut, 1000);
}

}  // namespace
}  // namespace isobit
