// The GPU kernels from their PTX, run by the interpreter under several schedules with the race checker on: bytes of the
// CPU backend, for both architectures' kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/linear_logp/test/emulated_call.h"
#include "ops/linear_logp/test/frozen.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kPlain = Outputs::kLogp | Outputs::kLse;
constexpr unsigned kWithEntropy = kPlain | Outputs::kEntropy | Outputs::kLogit;
constexpr unsigned kEverything = kWithEntropy | Outputs::kRank;
const std::string kFolder = ISOBIT_BINARY_DIR "/ptx/linear_logp";
void compare(const Problem& problem, unsigned wanted, std::initializer_list<const char*> kernels = {"sm90", "sm80"}) {
  compare_emulated(kFolder, problem, wanted, kernels);
}
Outputs run_emulated(const Problem& problem, unsigned wanted, const char* kernel) {
  return run_emulated(kFolder, problem, wanted, kernel);
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

TEST(LinearLogpEmulated, FrozenBytes) {
  for (const FrozenCase& c : frozen_cases()) {
    if (c.shape.vocab > 10000) continue;  // minutes in the interpreter
    const Problem problem = frozen_problem(c);
    for (const char* kernel : {"sm90", "sm80"}) {
      EXPECT_EQ(hash_words(run_emulated(problem, kFrozenOutputs, kernel).bytes()), c.outputs) << c.name << kernel;
    }
  }
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

// Enough row tiles and stages for blocks to keep pace with each other; one of the two has a tile more.
TEST(LinearLogpEmulated, Paced) {
  const Problem problem = random_problem({513, 4096, 576}, 12);
  const Outputs expected = run(problem, kPlain);
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 2, .machine = {.schedule = ptx::Schedule::kRandom}});
  const ScopedRuntime scope(&device);
  Call call(&device, problem, "sm90");
  Outputs found(problem, kPlain);
  call.attach(&found);
  call.take_workspace(/*recommended=*/true);
  ASSERT_EQ(isobit_linear_logp(&call.args(), nullptr), ISOBIT_OK) << isobit_last_error();
  call.fetch();
  expect_clean(device, "paced");
  EXPECT_EQ(device.launches(), 3u);  // the first one clears the laps
  EXPECT_EQ(expected.bytes(), found.bytes());
}

}  // namespace
}  // namespace isobit::linear_logp::test
