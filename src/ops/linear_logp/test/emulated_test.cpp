// The GPU kernels from their PTX, run by the interpreter under several schedules with the race checker on: bytes of the
// CPU backend, for both architectures' kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ops/linear_logp/test/emulated_call.h"
#include "ops/linear_logp/test/frozen.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kPlain = Outputs::kLogp | Outputs::kLse;
constexpr unsigned kWithEntropy = kPlain | Outputs::kEntropy | Outputs::kLogit;
constexpr unsigned kEverything = kWithEntropy | Outputs::kRank;
const std::string kFolder = ISOBIT_BINARY_DIR "/ptx/linear_logp";
void compare(const Problem& problem, unsigned wanted, std::initializer_list<const char*> kernels = {"sm90", "sm80"}) {
  const Outputs expected = run(problem, wanted);
  ptx::for_each_schedule(
      kFolder, {.multiprocessors = 3}, [&](ptx::EmulatedRuntime& device, const ptx::ScheduleCase& c) {
        for (const char* kernel : kernels) {
          const std::string what = std::string(kernel) + ", " + c.name;
          Call call(&device, problem, kernel);
          Outputs found(problem, wanted);
          call.attach(&found);
          call.take_workspace();
          ASSERT_EQ(isobit_linear_logp(&call.args(), nullptr), ISOBIT_OK) << what << isobit_last_error();
          call.fetch();
          expect_clean(device, what);
          for (int64_t row = 0; row < expected.rows; ++row) {
            ASSERT_EQ(expected.row_bytes(row), found.row_bytes(row))
                << what << ", row " << row << ": logp " << expected.logp_at(row) << " / " << found.logp_at(row);
          }
        }
      });
}

TEST(LinearLogpEmulated, FewRows) {
  compare(random_problem({3, 136, 700}, 1), kPlain);
  compare(random_problem({9, 64, 129}, 2), kWithEntropy);
}

TEST(LinearLogpEmulated, ManyRows) {
  compare(random_problem({70, 136, 1100}, 3), kPlain);
  compare(random_problem({130, 72, 450}, 4), kWithEntropy);
  compare(random_problem({65, 64, 256}, 13), kWithEntropy);  // the last tile is one whole unit
}

TEST(LinearLogpEmulated, Fp16AndAllTokenTiles) {
  for (const int64_t rows : {8, 16, 32, 64}) {
    compare(random_problem({rows, 64, 300}, 5, 4.0f, ISOBIT_FP16), kWithEntropy, {"sm90"});
  }
  compare(random_problem({66, 64, 300}, 6, 4.0f, ISOBIT_FP16), kWithEntropy);
}

TEST(LinearLogpEmulated, OddWidth) { compare(random_problem({5, 33, 200}, 7), kWithEntropy, {"sm80"}); }

// One run under the first schedule.
Outputs run_emulated(const Problem& problem, unsigned wanted, const char* kernel) {
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3});
  const ScopedRuntime scope(&device);
  Call call(&device, problem, kernel);
  Outputs found(problem, wanted);
  call.attach(&found);
  call.take_workspace();
  EXPECT_EQ(isobit_linear_logp(&call.args(), nullptr), ISOBIT_OK) << isobit_last_error();
  call.fetch();
  expect_clean(device, kernel);
  return found;
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
}

TEST(LinearLogpEmulated, FrozenBytes) {
  for (const FrozenCase& c : frozen_cases()) {
    if (c.shape.vocab > 10000) continue;  // minutes in the interpreter
    const Problem problem = frozen_problem(c);
    for (const char* kernel : {"sm90", "sm80"}) {
      EXPECT_EQ(hash_words(run_emulated(problem, kFrozenOutputs, kernel).bytes()), c.outputs) << c.name << kernel;
    }
  }
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

TEST(LinearLogpEmulated, SpecialRows) {
  for (const int64_t rows : {8, 66}) {
    Problem problem = random_problem({rows, 64, 330}, 10);
    problem.target[0] = -100;
    problem.target[1] = 330;
    problem.set_hidden(2, 3, NAN);
    problem.set_hidden(3, 3, 1e6f);
    problem.set_hidden(4, 0, INFINITY);
    problem.set_weight(200, 7, -INFINITY);
    compare(problem, kWithEntropy);
  }
}

// Long enough for blocks to keep pace with each other.
TEST(LinearLogpEmulated, Paced) {
  const Problem problem = random_problem({66, 4096, 3264}, 12);
  const Outputs expected = run(problem, kPlain);
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 2, .machine = {.schedule = ptx::Schedule::kRandom}});
  const ScopedRuntime scope(&device);
  Call call(&device, problem, "sm90");
  Outputs found(problem, kPlain);
  call.attach(&found);
  call.take_workspace();
  ASSERT_EQ(isobit_linear_logp(&call.args(), nullptr), ISOBIT_OK) << isobit_last_error();
  call.fetch();
  expect_clean(device, "paced");
  EXPECT_EQ(expected.bytes(), found.bytes());
}

}  // namespace
}  // namespace isobit::linear_logp::test
