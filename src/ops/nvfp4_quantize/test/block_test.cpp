// The rule of one block against the reference, and the cases that users met elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "numerics/bf16.h"
#include "numerics/nvfp4_block.h"
#include "ops/nvfp4_quantize/reference.h"
#include "ops/nvfp4_quantize/test/problem.h"

namespace isobit::nvfp4_quantize::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Block {
  float x[16] = {};
  uint8_t scale = 0;
  uint8_t codes[16] = {};

  Block& encode(float global = 1.0f) {
    uint32_t packed[2];
    scale = numerics::nvfp4_encode(numerics::nvfp4_encoder(global), x, packed);
    for (int i = 0; i < 16; ++i) codes[i] = packed[i / 8] >> (4 * (i % 8)) & 15;
    return *this;
  }
};

void expect_reference(const Block& block, float global) {
  const ReferenceBlock wanted = reference_block(block.x, global);
  ASSERT_EQ(block.scale, wanted.scale) << "global " << global;
  for (int i = 0; i < 16; ++i) ASSERT_EQ(block.codes[i], wanted.codes[i]) << i << ": " << block.x[i];
}

TEST(Nvfp4Block, IsTheReferenceOnRandomBlocks) {
  Random random(3);
  for (int round = 0; round < 20000; ++round) {
    Block block;
    const float global = std::ldexp(1.0f + static_cast<float>(random.bits() % 1000) / 1000, round % 41 - 20);
    const int exponent = static_cast<int>(random.bits() % 41) - 25;
    for (float& x : block.x) x = std::ldexp(random.normal(), exponent);
    expect_reference(block.encode(global), global);
  }
}

TEST(Nvfp4Block, IsTheReferenceOnEveryPatternOfHalves) {
  for (uint32_t first = 0; first < 65536; first += 16) {
    Block block;
    for (uint32_t i = 0; i < 16; ++i) block.x[i] = numerics::bf16_to_float(static_cast<uint16_t>((first + i) * 40503));
    expect_reference(block.encode(), 1.0f);
  }
}

TEST(Nvfp4Block, TiesGoToEven) {
  Block block;
  const float ties[] = {6,      0.25f,  0.75f,  1.25f,  1.75f, 2.5f,  3.5f, 5,
                        -0.25f, -0.75f, -1.25f, -1.75f, -2.5f, -3.5f, -5,   -6};
  const uint8_t codes[] = {7, 0, 2, 2, 4, 4, 6, 6, 8, 10, 10, 12, 12, 14, 14, 15};
  std::copy(std::begin(ties), std::end(ties), block.x);
  block.encode();
  EXPECT_EQ(block.scale, 0x38);  // 1
  for (int i = 0; i < 16; ++i) EXPECT_EQ(block.codes[i], codes[i]) << ties[i];
}

TEST(Nvfp4Block, ZerosGiveZeroAndKeepTheirSign) {
  Block block;
  block.x[3] = -0.0f;
  for (const float global : {1.0f, 1e-30f, std::numeric_limits<float>::max()}) {
    block.encode(global);
    EXPECT_EQ(block.scale, 0);
    for (int i = 0; i < 16; ++i) EXPECT_EQ(block.codes[i], i == 3 ? 8 : 0);
  }
}

// amax * g = 6 * 2^-10 is the tie between scale 0 and the smallest subnormal scale.
TEST(Nvfp4Block, SmallBlocksFlushToZero) {
  Block block;
  block.x[0] = -6 * 0x1p-10f;
  EXPECT_EQ(block.encode().scale, 0);
  EXPECT_EQ(block.codes[0], 8);
  block.x[0] = -6.01f * 0x1p-10f;
  EXPECT_EQ(block.encode().scale, 1);
  EXPECT_EQ(block.codes[0], 13);              // 6.01 / 2 lies nearer to 3
  EXPECT_EQ(block.encode(1024).scale, 0x38);  // a global scale brings it back
  EXPECT_EQ(block.codes[0], 15);
}

// An inverted denormal scale used to give an infinity, and its product with zero a NaN.
TEST(Nvfp4Block, DenormalAmaxGivesNeitherInfinityNorNan) {
  Block block;
  block.x[5] = 1e-40f;
  for (const float global : {1.0f, 1e30f, std::numeric_limits<float>::max()}) {
    block.encode(global);
    EXPECT_NE(block.scale & 0x7F, 0x7F);
    for (const uint8_t code : block.codes) EXPECT_EQ(code, 0) << global;
  }
  EXPECT_EQ(block.scale, 3);  // 1e-40 * 3.4e38 / 6 = 2.9 * 2^-9
}

TEST(Nvfp4Block, LargeBlocksSaturate) {
  Block block;
  block.x[0] = 3000;
  block.x[1] = 448;
  block.encode();
  EXPECT_EQ(block.scale, 0x7E);
  EXPECT_EQ(block.codes[0], 7);
  EXPECT_EQ(block.codes[1], 2);
  block.encode(2688.0f / 3000);
  EXPECT_EQ(block.scale, 0x7E);
  EXPECT_EQ(block.codes[0], 7);
}

TEST(Nvfp4Block, InfinitySaturatesItsElementAlone) {
  Block block;
  block.x[0] = kInf;
  block.x[1] = -kInf;
  block.x[2] = 448;
  block.encode();
  EXPECT_EQ(block.scale, 0x7E);
  EXPECT_EQ(block.codes[0], 7);
  EXPECT_EQ(block.codes[1], 15);
  EXPECT_EQ(block.codes[2], 2);
  EXPECT_EQ(block.codes[3], 0);
}

// A maximum that drops NaN would hide it.
TEST(Nvfp4Block, OneNanMarksTheWholeBlock) {
  for (int at = 0; at < 16; ++at) {
    Block block;
    for (float& x : block.x) x = -1;
    block.x[at] = at % 2 == 0 ? kNan : -kNan;
    block.encode();
    EXPECT_EQ(block.scale, 0x7F);
    for (const uint8_t code : block.codes) EXPECT_EQ(code, 7);
  }
}

TEST(Nvfp4Block, UnusableGlobalScaleMarksEveryBlock) {
  for (const float global : {0.0f, -0.0f, -1.0f, kInf, -kInf, kNan}) {
    Block block;
    EXPECT_EQ(block.encode(global).scale, 0x7F);
    for (const uint8_t code : block.codes) EXPECT_EQ(code, 7);
  }
}

}  // namespace
}  // namespace isobit::nvfp4_quantize::test
