// The frozen bytes on the CPU: outputs on every SIMD target, and the states of shards with odd borders.
#include "ops/linear_logp/test/frozen.h"

#include <gtest/gtest.h>

#include "ops/linear_logp/test/targets.h"

namespace isobit::linear_logp::test {
namespace {

class LinearLogpFrozen : public testing::TestWithParam<FrozenCase> {};

TEST_P(LinearLogpFrozen, OutputsStay) {
  const FrozenCase& c = GetParam();
  for_each_target([&] {
    Problem problem = frozen_problem(c);
    const uint64_t outputs = hash_words(run(problem, kFrozenOutputs).bytes());
    problem.top = kFrozenTop;
    const uint64_t everything = hash_words(run(problem).bytes());
    EXPECT_EQ(outputs, c.outputs) << std::hex << outputs;
    EXPECT_EQ(everything, c.everything) << std::hex << everything;
  });
}

TEST_P(LinearLogpFrozen, ShardsGiveTheSame) {
  const Problem problem = frozen_problem(GetParam());
  const int64_t vocab = problem.shape.vocab;
  const Outputs merged = run_sharded(problem, {1, 70, 192, vocab / 2 + 3, vocab - 1}, kFrozenOutputs);
  EXPECT_EQ(hash_words(merged.bytes()), GetParam().outputs);
}

// Raw logits of both border leaves, nodes of levels 0 and 1, target logits and counts.
TEST(LinearLogpFrozenState, StateStays) {
  const Problem problem = frozen_problem(frozen_cases()[2]);
  Outputs logits = run(problem, Outputs::kLogit);
  Outputs outputs(problem, kFrozenOutputs);
  isobit_linear_logp_args args = problem.args();
  outputs.attach(&args);
  args.target_logit.data = logits.target_logit.data();
  args.first_id = 100;
  args.weight = matrix(problem.weight.data(), problem.dtype, 700, problem.shape.width);
  args.bias.shape[0] = 700;
  args.vocab_size = problem.shape.vocab;
  size_t bytes = 0;
  size_t minimum = 0;
  ASSERT_EQ(isobit_linear_logp_state_bytes(&args, &bytes), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(isobit_linear_logp_workspace(&args, &minimum, nullptr), ISOBIT_OK) << isobit_last_error();
  Guarded state(bytes);
  Guarded workspace(minimum);
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.bytes();
  ASSERT_EQ(isobit_linear_logp_shard(&args, state.data(), nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(hash_words(state.contents()), 0x2B0C06D566315448u) << std::hex << hash_words(state.contents());
}

TEST(LinearLogpFrozenId, IsOne) { EXPECT_STREQ(isobit_linear_logp_contract(), "linear_logp/sm90-k16-f25/1"); }

// One bit of one operand changes the hash; the lowest of a mantissa may be below every output's last place.
TEST(LinearLogpFrozenHash, SeesAChange) {
  Problem problem = frozen_problem(frozen_cases()[0]);
  problem.weight[1000] ^= 0x4000;
  EXPECT_NE(hash_words(run(problem, kFrozenOutputs).bytes()), frozen_cases()[0].outputs);
}

std::string name_of(const testing::TestParamInfo<FrozenCase>& c) { return c.param.name; }
INSTANTIATE_TEST_SUITE_P(Cases, LinearLogpFrozen, testing::ValuesIn(frozen_cases().begin(), frozen_cases().end()),
                         name_of);

}  // namespace
}  // namespace isobit::linear_logp::test
