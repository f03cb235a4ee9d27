// Mistakes that fused log-probability kernels have been seen to make, each a small case with its right answer.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/linear_logp/test/problem.h"
#include "ops/linear_logp/tolerance.h"

namespace isobit::linear_logp::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Mistakes, LogProbabilitiesAreNotPositiveAndEntropyIsWithinItsRange) {
  const Problem p = random_problem({64, 70, 1000}, 41, 12.0f);
  const Outputs out = run(p);
  for (int64_t n = 0; n < 64; ++n) {
    EXPECT_LE(out.logp_at(n), 0.0f);
    EXPECT_GE(out.entropy_at(n), 0.0f);
    EXPECT_LE(out.entropy_at(n), std::log(1000.0f) * 1.0001f);
  }
}

// V rows of zeros in the weight, all real logits negative: padding would win every maximum.
Problem padded_problem(int64_t vocab, int64_t padded, float logit) {
  Problem p = random_problem({2, 1, padded}, 42);
  p.hidden.assign(2, 0x3F80);
  std::fill_n(p.weight.begin(), padded, uint16_t{0});
  for (int64_t v = 0; v < vocab; ++v) p.set_weight(v, 0, logit - static_cast<float>(v % 4));
  p.target = {0, vocab - 1};
  p.top = 3;
  return p;
}

TEST(Mistakes, PaddedRowsOfTheWeightDoNotEnter) {
  for (const int64_t vocab : {129920, 151936, 50257, 65}) {
    Problem p = padded_problem(vocab, vocab + 1664, -20.0f);
    Outputs out(p, Outputs::kAll);
    isobit_linear_logp_args args = p.args();
    out.attach(&args);
    args.vocab_size = vocab;
    run_whole(args);
    double sum = 0;
    for (int64_t v = 0; v < vocab; ++v) sum += std::exp(-static_cast<double>(v % 4));
    const double lse = -20.0 + std::log(sum);
    EXPECT_NEAR(out.lse_at(0), lse, lse_bound(lse, vocab));
    EXPECT_EQ(out.rank_at(0), 0);
    EXPECT_EQ(out.top_id_at(0, 0), 0);
    EXPECT_EQ(out.top_id_at(0, 1), 4);
    // The same bits as without padding.
    Problem exact = p;
    exact.shape.vocab = vocab;
    EXPECT_EQ(run(exact).bytes(), out.bytes());
  }
}

TEST(Mistakes, PaddingHasNoProbabilityUnderASoftcap) {
  for (const int64_t vocab : {32000, 65537, 256000}) {
    for (const float cap : {1.0f, 30.0f}) {
      Problem p = padded_problem(vocab, vocab + 64, 0.0f);
      p.softcap = cap;
      Problem exact = p;
      exact.shape.vocab = vocab;
      for (int64_t v = vocab; v < vocab + 64; ++v) p.set_weight(v, 0, -kInfinity);  // would come back as -cap
      Outputs out(p, Outputs::kAll);
      isobit_linear_logp_args args = p.args();
      out.attach(&args);
      args.vocab_size = vocab;
      run_whole(args);
      EXPECT_EQ(out.bytes(), run(exact).bytes());
    }
  }
}

TEST(Mistakes, SoftcapOfLargeLogitsDoesNotOverflow) {
  for (const float z : {2000.0f, -2000.0f, 1e30f}) {
    Problem p = problem_of_logits({z, 0.0f}, 0);
    p.softcap = 30.0f;
    EXPECT_EQ(run(p).logit_at(0), std::copysign(30.0f, z));
  }
}

TEST(Mistakes, OneLossPerRowForEveryRow) {
  // Twenty rows of 180,000 ids, each with another answer.
  Problem p = random_problem({20, 4, 180000}, 43);
  for (int64_t n = 0; n < 20; ++n) {
    for (int64_t k = 0; k < 4; ++k) p.set_hidden(n, k, k == 0 ? static_cast<float>(n) * 0.25f : 0.0f);
  }
  const Outputs out = run(p, Outputs::kLogp | Outputs::kLse, Workspace::kRecommended, 2);
  for (int64_t n = 0; n < 20; ++n) {
    double sum = 0;
    for (int64_t v = 0; v < 180000; ++v) sum += std::exp(p.hidden_at(n, 0) * p.weight_at(v, 0));
    EXPECT_NEAR(out.lse_at(n), std::log(sum), 1e-4);
    const double z = p.hidden_at(n, 0) * p.weight_at(p.target[static_cast<size_t>(n)], 0);
    EXPECT_NEAR(out.logp_at(n), z - std::log(sum), 1e-4);
  }
}

TEST(Mistakes, VocabulariesSmallerThanATile) {
  for (const int64_t vocab : {3, 10, 15, 32}) {
    const Problem p = random_problem({50, 128, vocab}, 44);
    const Outputs out = run(p);
    for (int64_t n = 0; n < 50; ++n) {
      EXPECT_NEAR(out.logp_at(n), reference_row(p.reference(), n).logp[0], 2e-4);
      EXPECT_LT(out.logp_at(n), 0.0f);
    }
  }
}

TEST(Mistakes, HiddenSizesThatNoTileDivides) {
  for (const int64_t width : {896, 1152, 2880, 5376, 1023}) {
    const Problem p = random_problem({2, width, 200}, 45);
    const Outputs out = run(p);
    for (int64_t n = 0; n < 2; ++n) EXPECT_NEAR(out.lse_at(n), reference_row(p.reference(), n).lse, 2e-3);
  }
}

TEST(Mistakes, EqualHugeLogits) {
  EXPECT_NEAR(run(problem_of_logits({1e8f, 1e8f}, 0)).logp_at(0), -std::log(2.0), 1e-7);
}

TEST(Mistakes, LogitsWithALargeCommonOffset) {
  std::vector<float> logits;
  for (const float x : {0.1f, 0.9f, 0.4f}) logits.push_back(x * 3.0f - 1e7f);
  const Problem p = problem_of_logits(logits, 1);
  const std::vector<double> exact(logits.begin(), logits.end());
  const ReferenceRow row = reference_from_logits(p.reference(), 0, exact);
  EXPECT_NEAR(run(p).logp_at(0), row.logp[0], logp_bound(row.logp[0], 3));
}

TEST(Mistakes, AllRowsIgnored) {
  Problem p = random_problem({40, 20, 100}, 46);
  p.top = 2;
  std::fill(p.target.begin(), p.target.end(), -100);
  const Outputs out = run(p);
  EXPECT_EQ(out.bytes(), std::string(out.bytes().size(), '\0'));
}

TEST(Mistakes, AlmostAllRowsIgnored) {
  Problem p = random_problem({300, 20, 100}, 47);
  const Outputs full = run(p);
  for (int64_t n = 0; n < 300; ++n) {
    if (n != 13 && n != 299) p.target[static_cast<size_t>(n)] = -100;
  }
  const Outputs out = run(p, Outputs::kAll, Workspace::kMinimum);
  for (const int64_t n : {13, 299}) EXPECT_EQ(out.row_bytes(n), full.row_bytes(n));
  EXPECT_EQ(bits_of(out.logp_at(14)), 0u);
}

TEST(Mistakes, TemperatureIsAppliedOnce) {
  Problem p = random_problem({4, 30, 200}, 48);
  const Outputs plain = run(p);
  p.temperature_value = 0.7f;
  const Outputs tempered = run(p);
  for (int64_t n = 0; n < 4; ++n) EXPECT_EQ(tempered.logit_at(n), plain.logit_at(n) / 0.7f);
}

TEST(Mistakes, AWeightChangedInPlaceCounts) {
  Problem p = random_problem({2, 30, 200}, 49);
  const isobit_linear_logp_args args = p.args();
  const Outputs before = run(p);
  for (uint16_t& w : p.weight) w = static_cast<uint16_t>((w & 0x7FFF) == 0 ? w : w + 0x80);  // times 2
  ASSERT_EQ(args.weight.data, p.weight.data());
  EXPECT_EQ(run(p).logit_at(0), 2.0f * before.logit_at(0));
}

TEST(Mistakes, SlicesAndStridesOfInputs) {
  const Problem p = random_problem({6, 20, 100}, 50);
  const Outputs out = run(p);
  std::vector<uint16_t> weight(100 * 33, 0x7FC0);
  for (int64_t v = 0; v < 100; ++v) std::copy_n(&p.weight[v * 20], 20, &weight[v * 33 + 7]);
  std::vector<int64_t> labels(12, 99999);
  for (int64_t n = 0; n < 6; ++n) labels[2 * n] = p.target[n];
  Outputs again(p, Outputs::kAll);
  isobit_linear_logp_args args = p.args();
  again.attach(&args);
  args.weight = matrix(weight.data() + 7, ISOBIT_BF16, 100, 20, 33);
  args.target = vector(labels.data(), ISOBIT_INT64, 6, 2);
  run_whole(args);
  EXPECT_EQ(again.bytes(), out.bytes());
}

TEST(Mistakes, OffsetsBeyondTwoToTheThirtyOne) {
  // Rows 2^31 + 8 elements apart in memory that is reserved but never touched between them.
  constexpr int64_t kStride = (int64_t{1} << 31) + 8;
  constexpr size_t kBytes = static_cast<size_t>(3 * kStride) * sizeof(float);
  const Problem p = random_problem({3, 20, 3}, 51);
  const Outputs expected = run(p);
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const operands = static_cast<uint16_t*>(memory);
  auto* const logp = static_cast<float*>(memory) + 64;
  for (int64_t i = 0; i < 3; ++i) {
    std::copy_n(&p.hidden[i * 20], 20, operands + i * kStride);
    std::copy_n(&p.weight[i * 20], 20, operands + i * kStride + 32);
  }
  std::vector<float> apart(3, 0.0f);
  isobit_linear_logp_args args = p.args();
  args.hidden = matrix(operands, ISOBIT_BF16, 3, 20, kStride);
  args.weight = matrix(operands + 32, ISOBIT_BF16, 3, 20, kStride);
  args.logp = vector(apart.data(), ISOBIT_FP32, 3);
  run_whole(args);
  args = p.args();
  args.logp = vector(logp, ISOBIT_FP32, 3, kStride);
  run_whole(args);
  for (int64_t n = 0; n < 3; ++n) {
    EXPECT_EQ(bits_of(apart[n]), bits_of(expected.logp_at(n)));
    EXPECT_EQ(bits_of(logp[n * kStride]), bits_of(expected.logp_at(n)));
  }
  munmap(memory, kBytes);
}

TEST(Mistakes, EqualBitsOverShardsAreAlsoAccurate) {
  Problem p = random_problem({4, 256, 4000}, 52);
  const Outputs sharded = run_sharded(p, {1000, 2000, 3000}, Outputs::kLogp | Outputs::kLse);
  EXPECT_EQ(sharded.bytes(), run(p, Outputs::kLogp | Outputs::kLse).bytes());
  for (int64_t n = 0; n < 4; ++n) EXPECT_NEAR(sharded.logp_at(n), reference_row(p.reference(), n).logp[0], 3e-4);
}

}  // namespace
}  // namespace isobit::linear_logp::test
