// Every option against the oracle, and the bits that must not depend on how an argument is laid out.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "ops/linear_logp/test/problem.h"
#include "ops/linear_logp/tolerance.h"

namespace isobit::linear_logp::test {
namespace {

// All outputs of all rows near the oracle's: what an option means, not how exact it is (accuracy_test.cpp).
void expect_near_reference(const Problem& p, const Outputs& out) {
  constexpr double kTolerance = 2e-4;
  const ReferenceProblem reference = p.reference();
  for (int64_t n = 0; n < p.shape.rows; ++n) {
    SCOPED_TRACE(testing::Message() << "row " << n);
    const ReferenceRow row = reference_row(reference, n);
    EXPECT_NEAR(out.lse_at(n), row.lse, kTolerance);
    EXPECT_NEAR(out.entropy_at(n), row.entropy, kTolerance);
    for (int64_t k = 0; k < p.shape.targets; ++k) {
      EXPECT_NEAR(out.logp_at(n, k), row.logp[k], kTolerance);
      EXPECT_NEAR(out.logit_at(n, k), row.target_logit[k], kTolerance);
      EXPECT_EQ(out.rank_at(n, k), row.rank[k]);
    }
    for (int64_t t = 0; t < p.top; ++t) {
      EXPECT_EQ(out.top_id_at(n, t), row.top_id[t]);
      EXPECT_NEAR(out.top_logp_at(n, t), row.top_logp[t], kTolerance);
    }
  }
}

Problem usual_problem(int64_t targets = 1) {
  Problem p = random_problem({4, 48, 1300, targets}, 11);
  p.top = 5;
  return p;
}

TEST(Options, None) {
  const Problem p = usual_problem();
  expect_near_reference(p, run(p));
}

TEST(Options, Fp16Operands) {
  Problem p = random_problem({3, 33, 300}, 12, 4.0f, ISOBIT_FP16);
  p.top = 2;
  expect_near_reference(p, run(p));
}

TEST(Options, BiasOfEveryDtype) {
  Problem p = usual_problem();
  for (int64_t v = 0; v < 1300; ++v) p.bias.push_back(static_cast<float>(v % 17) * 0.25f - 2.0f);
  const Outputs out = run(p);
  expect_near_reference(p, out);
  std::vector<uint16_t> bf16;
  std::vector<uint16_t> fp16;
  for (const float b : p.bias) {
    bf16.push_back(numerics::bf16_from_float(b));
    fp16.push_back(numerics::fp16_from_float(b));
    fp16.push_back(0x7E00);  // NaN between the elements
  }
  for (const isobit_tensor& bias :
       {vector(bf16.data(), ISOBIT_BF16, 1300), vector(fp16.data(), ISOBIT_FP16, 1300, 2)}) {
    Outputs again(p, Outputs::kAll);
    isobit_linear_logp_args args = p.args();
    again.attach(&args);
    args.bias = bias;
    run_whole(args);
    EXPECT_EQ(again.bytes(), out.bytes());
  }
}

TEST(Options, BiasOfZerosIsNoBias) {
  Problem p = usual_problem();
  const std::string without = run(p).bytes();
  p.bias.assign(1300, 0.0f);
  EXPECT_EQ(run(p).bytes(), without);
}

TEST(Options, SoftcapComesBeforeTemperature) {
  Problem p = usual_problem(3);
  p.softcap = 2.5f;
  p.temperature_value = 0.7f;
  expect_near_reference(p, run(p));
}

TEST(Options, TemperaturePerRowAndPerCallGiveEqualBits) {
  Problem p = usual_problem();
  p.temperature_value = 0.6f;
  const Outputs per_call = run(p);
  expect_near_reference(p, per_call);
  p.temperature.assign(4, 0.6f);
  EXPECT_EQ(run(p).bytes(), per_call.bytes());
  p.temperature = {0.6f, 1.0f, 2.0f, 0.6f};
  const Outputs per_row = run(p);
  expect_near_reference(p, per_row);
  EXPECT_EQ(per_row.row_bytes(3), per_call.row_bytes(3));
  p.temperature.clear();
  p.temperature_value = 1.0f;
  EXPECT_EQ(per_row.row_bytes(1), run(p).row_bytes(1)) << "a temperature of 1 in a row, and none";
}

TEST(Options, ManyTargetsPerRow) {
  Problem p = usual_problem(64);
  p.target[3] = p.target[4];  // the same id twice
  const Outputs out = run(p);
  expect_near_reference(p, out);
  for (int64_t k = 0; k < 64; ++k) {
    Problem one = p;
    one.shape.targets = 1;
    for (int64_t n = 0; n < 4; ++n) one.target[n] = p.target[n * 64 + k];
    const Outputs single = run(one);
    for (int64_t n = 0; n < 4; ++n) {
      EXPECT_EQ(bits_of(single.logp_at(n)), bits_of(out.logp_at(n, k)));
      EXPECT_EQ(single.rank_at(n), out.rank_at(n, k));
    }
  }
}

TEST(Options, AnyChoiceOfOutputsHasTheSameBits) {
  const Problem p = usual_problem(2);
  const Outputs all = run(p);
  for (unsigned wanted = 1; wanted < Outputs::kAll; ++wanted) {
    const Outputs some = run(p, wanted);
    for (const auto& [memory, full] : {std::pair{&some.logp, &all.logp},
                                       {&some.lse, &all.lse},
                                       {&some.entropy, &all.entropy},
                                       {&some.rank, &all.rank},
                                       {&some.target_logit, &all.target_logit},
                                       {&some.top_id, &all.top_id},
                                       {&some.top_logp, &all.top_logp}}) {
      if (memory->bytes() > 0) {
        ASSERT_EQ(memory->contents(), full->contents()) << wanted;
      }
    }
  }
}

TEST(Options, Int32TargetsWithAnyStrides) {
  const Problem p = usual_problem(3);
  const Outputs out = run(p);
  std::vector<int32_t> transposed(3 * 4 * 2, 123456789);
  for (int64_t n = 0; n < 4; ++n) {
    for (int64_t k = 0; k < 3; ++k) transposed[(k * 4 + n) * 2] = static_cast<int32_t>(p.target[n * 3 + k]);
  }
  Outputs again(p, Outputs::kAll);
  isobit_linear_logp_args args = p.args();
  again.attach(&args);
  args.target = matrix(transposed.data(), ISOBIT_INT32, 4, 3);
  args.target.stride[0] = 2;
  args.target.stride[1] = 8;
  run_whole(args);
  EXPECT_EQ(again.bytes(), out.bytes());
}

TEST(Options, OutputsWithStrides) {
  const Problem p = usual_problem(3);
  const Outputs out = run(p);
  std::vector<float> logp(3 * 4 * 3, -7.0f);
  std::vector<float> lse(4 * 5, -7.0f);
  isobit_linear_logp_args args = p.args();
  args.logp = matrix(logp.data(), ISOBIT_FP32, 4, 3);
  args.logp.stride[0] = 2;
  args.logp.stride[1] = 9;
  args.lse = vector(lse.data(), ISOBIT_FP32, 4, 5);
  run_whole(args);
  for (int64_t n = 0; n < 4; ++n) {
    EXPECT_EQ(bits_of(lse[n * 5]), bits_of(out.lse_at(n)));
    for (int64_t k = 0; k < 3; ++k) EXPECT_EQ(bits_of(logp[n * 2 + k * 9]), bits_of(out.logp_at(n, k)));
  }
  EXPECT_EQ(std::count(logp.begin(), logp.end(), -7.0f), 3 * 4 * 3 - 12);
  EXPECT_EQ(std::count(lse.begin(), lse.end(), -7.0f), 4 * 5 - 4);
}

TEST(Options, RanksAndTopListBreakTiesByTheLowerId) {
  std::vector<float> logits(300, 1.0f);
  logits[10] = logits[200] = 3.0f;
  logits[150] = 2.0f;
  Problem p = problem_of_logits(logits, 200);
  p.shape.targets = 5;
  p.target = {10, 200, 150, 0, 299};
  p.top = 5;
  const Outputs out = run(p);
  const int32_t ranks[] = {0, 1, 2, 3, 299};
  const int32_t ids[] = {10, 200, 150, 0, 1};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(out.rank_at(0, i), ranks[i]);
    EXPECT_EQ(out.top_id_at(0, i), ids[i]);
  }
  EXPECT_EQ(bits_of(out.top_logp_at(0, 0)), bits_of(out.logp_at(0, 0)));
}

TEST(Options, TopListOfTheWholeVocabulary) {
  for (const int64_t vocab : {2, 7, 64}) {
    Problem p = random_problem({3, 20, vocab}, 13);
    p.top = vocab;
    p.bias.assign(static_cast<size_t>(vocab), 0.0f);
    p.bias[0] = -std::numeric_limits<float>::infinity();  // in the list all the same, at its end
    const Outputs out = run(p);
    for (int64_t n = 0; n < 3; ++n) {
      const ReferenceRow row = reference_row(p.reference(), n);
      for (int64_t t = 0; t < vocab; ++t) EXPECT_EQ(out.top_id_at(n, t), row.top_id[t]);
      EXPECT_EQ(out.top_logp_at(n, vocab - 1), -std::numeric_limits<float>::infinity());
    }
  }
}

TEST(Options, WidthsAroundTheGroupsOf16) {
  for (const int64_t width : {1, 15, 16, 17, 31, 47, 100}) {
    Problem p = random_problem({2, width, 70}, 14);
    p.top = 3;
    expect_near_reference(p, run(p));
  }
}

TEST(Options, NoRows) {
  Problem p = random_problem({0, 16, 100}, 15);
  p.top = 2;
  const Outputs out = run(p);
  EXPECT_EQ(out.bytes(), "");
}

}  // namespace
}  // namespace isobit::linear_logp::test
