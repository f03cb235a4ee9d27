// The frozen bytes of the gradients on the CPU, on every SIMD target, and over shards.
#include "ops/linear_logp/test/backward_frozen.h"

#include <gtest/gtest.h>

#include "ops/linear_logp/test/backward_shards.h"
#include "ops/linear_logp/test/targets.h"

namespace isobit::linear_logp::test {
namespace {

class LinearLogpBackwardFrozen : public testing::TestWithParam<FrozenBackwardCase> {};

TEST_P(LinearLogpBackwardFrozen, GradientsStay) {
  const BackwardCase c = frozen_backward_case(GetParam());
  for_each_target([&] {
    const uint64_t whole = hash_gradients(run_backward_on_cpu(c));
    const uint64_t subtract_p =
        hash_gradients(run_backward_on_cpu(c, {.minimum = true, .saves = true, .subtract_p = 1}));
    EXPECT_EQ(whole, GetParam().whole) << std::hex << whole;
    EXPECT_EQ(subtract_p, GetParam().subtract_p) << std::hex << subtract_p;
  });
}

TEST(LinearLogpBackwardFrozenShards, GiveTheSame) {
  const FrozenBackwardCase& everything = frozen_backward_cases()[1];
  const BackwardCase c = frozen_backward_case(everything);
  EXPECT_EQ(hash_gradients(run_backward_shards_on_cpu(c, {0, 57, 513, 900}).merged), everything.subtract_p);
}

TEST(LinearLogpBackwardFrozenId, IsOne) {
  EXPECT_STREQ(isobit_linear_logp_backward_contract(), "linear_logp_backward/sm90-k16-f25/1");
}

TEST(LinearLogpBackwardFrozenHash, SeesAChange) {
  BackwardCase c = frozen_backward_case(frozen_backward_cases()[0]);
  c.d_logp[3] = -c.d_logp[3];
  EXPECT_NE(hash_gradients(run_backward_on_cpu(c)), frozen_backward_cases()[0].whole);
}

std::string name_of(const testing::TestParamInfo<FrozenBackwardCase>& c) { return c.param.name; }
INSTANTIATE_TEST_SUITE_P(Cases, LinearLogpBackwardFrozen,
                         testing::ValuesIn(frozen_backward_cases().begin(), frozen_backward_cases().end()), name_of);

}  // namespace
}  // namespace isobit::linear_logp::test
