// Options of a call on the PTX interpreter: bias, softcap, temperature, ranks and top lists have the bytes of the CPU
// backend on every path that a fragment can take.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/linear_logp/test/emulated_call.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kWithEntropy = Outputs::kLogp | Outputs::kLse | Outputs::kEntropy | Outputs::kLogit;
constexpr unsigned kEverything = kWithEntropy | Outputs::kRank;
const std::string kFolder = ISOBIT_BINARY_DIR "/ptx/linear_logp";
void compare(const Problem& problem, unsigned wanted, std::initializer_list<const char*> kernels = {"sm90", "sm80"}) {
  compare_emulated(kFolder, problem, wanted, kernels);
}
Outputs run_emulated(const Problem& problem, unsigned wanted, const char* kernel) {
  return run_emulated(kFolder, problem, wanted, kernel);
}

TEST(LinearLogpEmulated, Options) {
  compare(with_options({6, 64, 300, 2}, 8), kEverything);
  compare(with_options({67, 64, 300, 2}, 9), kEverything);
  // Temperatures alone: most rows share a divisor, some warps meet one that cannot.
  Problem tempered = random_problem({70, 64, 450}, 16);
  for (int64_t n = 0; n < 70; ++n) tempered.temperature.push_back(0.5f + 0.1f * static_cast<float>(n % 11));
  tempered.temperature[3] = 1.0f;
  tempered.temperature[20] = 0x1p-40f;
  tempered.temperature[40] = NAN;
  for (int64_t k = 0; k < 64; ++k) tempered.set_hidden(50, k, 0.0f);
  compare(tempered, kWithEntropy);
}

// More ids than the top list has threads, so that some own two; equal logits; rows that list nothing.
TEST(LinearLogpEmulated, TopLists) {
  Problem problem = random_problem({4, 16, 1151}, 14);
  problem.top = 4;
  for (int64_t v = 600; v < 1151; v += 3) {
    for (int64_t k = 0; k < 16; ++k) problem.set_weight(v, k, problem.weight_at(v - 600, k));
  }
  problem.target[0] = -100;
  problem.target[1] = 1151;
  problem.set_hidden(2, 3, NAN);
  compare(problem, Outputs::kAll, {"sm90"});
  Problem many = with_options({65, 16, 70, 2}, 15);
  many.top = 2;
  const std::string expected = run(many).bytes();
  for (const char* kernel : {"sm90", "sm80"}) EXPECT_EQ(run_emulated(many, Outputs::kAll, kernel).bytes(), expected);
  Problem more_than_units = random_problem({66, 16, 200}, 19);
  more_than_units.top = 7;
  const std::string of_all = run(more_than_units).bytes();
  for (const char* kernel : {"sm90", "sm80"}) {
    EXPECT_EQ(run_emulated(more_than_units, Outputs::kAll, kernel).bytes(), of_all);
  }
}

// Weights repeat every 96 ids, so that most logits have equals before and behind them. Targets of the first warp lie in
// the last tile, of the second one in the first; the others' are spread.
TEST(LinearLogpEmulated, Ranks) {
  Problem problem = random_problem({70, 16, 450, 2}, 17);
  for (int64_t v = 96; v < 450; ++v) {
    for (int64_t k = 0; k < 16; ++k) problem.set_weight(v, k, problem.weight_at(v - 96, k));
  }
  for (int64_t i = 0; i < 32; ++i) problem.target[i] = 400 + i;
  for (int64_t i = 32; i < 64; ++i) problem.target[i] = i;
  problem.target[80] = -100;
  compare(problem, kEverything);
  // Targets and others at -inf, zeros of a row that is all zeros.
  for (int64_t v = 0; v < 450; ++v) problem.bias.push_back(v % 4 == 0 ? -INFINITY : 0.0f);
  for (int64_t k = 0; k < 16; ++k) problem.set_hidden(5, k, 0.0f);
  const std::string expected = run(problem, kEverything).bytes();
  for (const char* kernel : {"sm90", "sm80"}) EXPECT_EQ(run_emulated(problem, kEverything, kernel).bytes(), expected);
}

// Logits that a shared divisor must not take, in one row of a warp.
TEST(LinearLogpEmulated, SoftcapBeyondTheShortPath) {
  Problem problem = random_problem({67, 16, 200}, 18);
  problem.softcap = 20.0f;
  problem.temperature_value = 0.7f;
  problem.set_hidden(3, 2, 1e30f);
  problem.set_hidden(40, 1, INFINITY);
  compare(problem, kWithEntropy);
}

}  // namespace
}  // namespace isobit::linear_logp::test
