// The bits of a row, over everything inside the library that may not touch them: SIMD targets, threads, chunks. What a
// caller can vary (batches, strides, shards) is checked at full size by `isobit check linear_logp --invariance`.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cpu/float_environment.h"
#include "ops/linear_logp/node.h"
#include "ops/linear_logp/test/problem.h"
#include "ops/linear_logp/test/targets.h"
#include "ops/linear_logp/unit.h"

namespace isobit::linear_logp::test {
namespace {

Problem problem_with_every_option(const Shape& shape, isobit_dtype dtype) {
  Problem p = random_problem(shape, 31, 6.0f, dtype);
  p.top = std::min<int64_t>(shape.vocab, 3);
  p.softcap = 25.0f;
  for (int64_t v = 0; v < shape.vocab; ++v) p.bias.push_back(static_cast<float>(v % 13) * 0.125f);
  for (int64_t n = 0; n < shape.rows; ++n) p.temperature.push_back(0.5f + static_cast<float>(n % 5) * 0.25f);
  p.target[0] = -100;
  return p;
}

TEST(Invariance, SimdTargetsThreadsAndChunks) {
  for (const isobit_dtype dtype : {ISOBIT_BF16, ISOBIT_FP16}) {
    for (const Shape& shape : {Shape{3, 33, 1}, Shape{3, 33, 63}, Shape{5, 100, 129, 2}, Shape{18, 16, 2500, 2}}) {
      const Problem p = problem_with_every_option(shape, dtype);
      const std::string base = run(p).bytes();
      for_each_target([&] {
        for (const Workspace workspace : {Workspace::kMinimum, Workspace::kRecommended}) {
          for (const int threads : {1, 2, 3}) ASSERT_EQ(run(p, Outputs::kAll, workspace, threads).bytes(), base);
        }
      });
    }
  }
}

TEST(Invariance, RowsAloneAndInABatch) {
  Problem p = random_problem({300, 40, 700}, 32);
  const Outputs batch = run(p);
  for (const int64_t row : {0, 1, 127, 128, 129, 299}) {
    Problem alone = p;
    alone.shape.rows = 1;
    alone.hidden.assign(p.hidden.begin() + row * 40, p.hidden.begin() + (row + 1) * 40);
    alone.target = {p.target[static_cast<size_t>(row)]};
    EXPECT_EQ(run(alone).bytes(), batch.row_bytes(row)) << row;
  }
}

TEST(Invariance, ShardsOfAnyBorders) {
  std::mt19937_64 random(33);
  for (const int64_t vocab : {1, 65, 129, 1025, 8193}) {
    Problem p = problem_with_every_option({4, 24, vocab, 2}, ISOBIT_BF16);
    p.top = 0;
    const std::string base = run(p).bytes();
    for (int shards = 1; shards <= 16; shards += 3) {
      std::vector<int64_t> cuts;
      for (int i = 1; i < shards; ++i) cuts.push_back(std::uniform_int_distribution<int64_t>(0, vocab)(random));
      std::sort(cuts.begin(), cuts.end());
      ASSERT_EQ(run_sharded(p, cuts, Outputs::kAll, 2).bytes(), base) << vocab << " in " << shards;
    }
    // Four ranks in one leaf, one of them empty.
    const std::vector<int64_t> in_one_leaf = {vocab / 5, vocab / 5, vocab / 5 + 1, std::min(vocab / 5 + 40, vocab)};
    ASSERT_EQ(run_sharded(p, in_one_leaf, Outputs::kAll).bytes(), base);
  }
}

TEST(Invariance, AWrongMergeOrderChangesBits) {
  // The tests above would be worth nothing if any order gave the same bits.
  std::mt19937_64 random(34);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  int descending = 0;
  int pairwise = 0;
  for (int trial = 0; trial < 100; ++trial) {
    Node leaves[8];
    for (Node& leaf : leaves) {
      float z[kLeaf];
      for (float& x : z) x = normal(random);
      leaf = reduce_leaf<true>(z, kLeaf);
    }
    Node ascending = leaves[0];
    Node backwards = leaves[7];
    for (int i = 1; i < 8; ++i) {
      ascending = merge<true>(ascending, leaves[i]);
      backwards = merge<true>(backwards, leaves[7 - i]);
    }
    const auto pair = [&](int i) { return merge<true>(leaves[2 * i], leaves[2 * i + 1]); };
    const Node tree = merge<true>(merge<true>(pair(0), pair(1)), merge<true>(pair(2), pair(3)));
    descending += bits_of(ascending.s) != bits_of(backwards.s) ? 1 : 0;
    pairwise += bits_of(ascending.s) != bits_of(tree.s) ? 1 : 0;
  }
  EXPECT_GT(descending, 20);
  EXPECT_GT(pairwise, 20);
}

TEST(Invariance, CallersRoundingModeIsKeptAndDoesNotMatter) {
  const Problem p = random_problem({3, 40, 300}, 35);
  const std::string base = run(p).bytes();
  Outputs outputs(p, Outputs::kAll);
  {
    const isobit::cpu::FloatEnvironment caller(isobit::cpu::Rounding::kTowardZero);
    const volatile float one = 1.0f;
    const volatile float tiny = 0x1p-30f;
    const float before = one - tiny;
    isobit_linear_logp_args args = p.args();
    outputs.attach(&args);
    args.threads = 2;
    run_whole(args);
    EXPECT_EQ(one - tiny, before);
    EXPECT_LT(before, 1.0f);
  }
  EXPECT_EQ(outputs.bytes(), base);
}

}  // namespace
}  // namespace isobit::linear_logp::test
