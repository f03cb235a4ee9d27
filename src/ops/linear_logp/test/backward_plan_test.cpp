// How backward calls on a GPU are cut: whole segments, whole pieces of rows, inside the workspace.
#include "ops/linear_logp/cuda/backward_plan.h"

#include <gtest/gtest.h>

namespace isobit::linear_logp::cuda::test {
namespace {

constexpr size_t kScratch = size_t{26} << 20;
constexpr size_t kGibibyte = size_t{1} << 30;

BackwardParams params(int64_t rows, int64_t width, int64_t vocab, isobit_dtype weight = ISOBIT_FP32) {
  BackwardParams p{};
  p.forward.rows = rows;
  p.forward.width = width;
  p.forward.vocab = p.forward.count = vocab;
  p.forward.targets = 1;
  p.wants_hidden = p.wants_weight = true;
  p.d_weight.dtype = weight;
  return p;
}

// The logits of 2^31 rows and ids.
TEST(WorkspaceArena, MeasuresWhatNoWorkspaceHolds) {
  Arena arena(nullptr);
  EXPECT_EQ(arena.take<float>(100), nullptr);
  EXPECT_EQ(arena.used(), 512u);
  arena.take<float>(int64_t{1} << 62);
  EXPECT_EQ(arena.used(), SIZE_MAX);
  arena.take<float>(1);
  EXPECT_EQ(arena.used(), SIZE_MAX);
}

TEST(BackwardPlan, ModelShapesShareTheirLogitsWithinAGibibyte) {
  for (const BackwardParams& p : {params(4096, 2048, 131072), params(4096, 4096, 151936), params(8192, 4096, 151936),
                                  params(16384, 4096, 151936), params(8192, 4096, 151936, ISOBIT_BF16)}) {
    const BackwardPlan plan = choose_plan(p, kScratch, kGibibyte);
    ASSERT_EQ(plan.count, 1) << p.forward.rows;
    EXPECT_TRUE(plan.sweeps[0].hidden && plan.sweeps[0].weight);
    EXPECT_LE(plan_bytes(p, plan, kScratch), kGibibyte);
  }
  EXPECT_EQ(choose_plan(params(8192, 4096, 151936), 0, kGibibyte).sweeps[0].slices, 2);
  EXPECT_EQ(choose_plan(params(4096, 4096, 151936), 0, kGibibyte).sweeps[0].slices, 4);
  EXPECT_EQ(choose_plan(params(4096, 2048, 131072), 0, kGibibyte).sweeps[0].slices, 8);
}

// bf16 sums cannot wait in d_weight.
TEST(BackwardPlan, ManyRowsWithBf16AreMadeApart) {
  EXPECT_EQ(choose_plan(params(8192, 64, 4096, ISOBIT_BF16), kScratch, kGibibyte).count, 1);
  EXPECT_EQ(choose_plan(params(8193, 64, 4096, ISOBIT_BF16), kScratch, kGibibyte).count, 2);
  EXPECT_EQ(choose_plan(params(8193, 64, 4096, ISOBIT_FP32), kScratch, kGibibyte).count, 1);
}

TEST(BackwardPlan, FitsAndKeepsTheBordersOfTheContract) {
  for (const int64_t vocab : {100, 50257, 131072, 262208}) {
    for (const int64_t rows : {1, 130, 9000}) {
      for (const isobit_dtype dtype : {ISOBIT_FP32, ISOBIT_BF16}) {
        const BackwardParams p = params(rows, 200, vocab, dtype);
        const size_t least = plan_bytes(p, smallest_plan(p), kScratch);
        EXPECT_EQ(choose_plan(p, kScratch, kScratch).count, 0);
        for (size_t bytes = least; bytes < 8 * kGibibyte; bytes *= 2) {
          const BackwardPlan plan = choose_plan(p, kScratch, bytes);
          ASSERT_GT(plan.count, 0);
          EXPECT_LE(plan_bytes(p, plan, kScratch), bytes);
          for (int i = 0; i < plan.count; ++i) {
            const Sweep& s = plan.sweeps[i];
            EXPECT_TRUE(s.rows == rows || s.rows % kRowPadding == 0);
            EXPECT_EQ(s.slice_pitch % 8, 0);
            if (s.hidden) {
              EXPECT_EQ(s.slice_ids, segment_ids(vocab));
              EXPECT_EQ(kSegments % s.slices, 0);
            }
            EXPECT_TRUE(!s.weight || s.rows == rows || (dtype == ISOBIT_FP32 && s.rows == kPiece));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace isobit::linear_logp::cuda::test
