// The bytes of contract geglu/ieee-fp32/1, frozen: a hash of the outputs of every 16-bit input and of many fp32 ones.
#include <gtest/gtest.h>

#include "ops/geglu/test/problem.h"

namespace isobit::geglu::test {
namespace {

// FNV-1a, over the words.
uint64_t hash(uint64_t seed, const std::vector<uint32_t>& words) {
  for (const uint32_t word : words) seed = (seed ^ word) * 0x100000001B3u;
  return seed;
}

uint64_t hash_of(isobit_dtype dtype, isobit_gelu gelu) {
  // No library distribution takes part in these inputs: patterns come straight from the generator.
  const Values values = dtype == ISOBIT_FP32 ? Values::kPatterns : Values::kEveryHalf;
  Problem problem(dtype, {.rows = 16, .columns = 65536}, values, 20261129);
  const isobit_geglu_forward_args forward = problem.forward(gelu);
  EXPECT_EQ(isobit_geglu_forward(&forward, nullptr), ISOBIT_OK) << isobit_last_error();
  const isobit_geglu_backward_args backward = problem.backward(gelu);
  EXPECT_EQ(isobit_geglu_backward(&backward, nullptr), ISOBIT_OK) << isobit_last_error();
  return hash(hash(hash(0xCBF29CE484222325u, problem.out()), problem.d_gate()), problem.d_up());
}

struct Golden {
  isobit_dtype dtype;
  isobit_gelu gelu;
  uint64_t hash;
};
constexpr Golden kGolden[] = {
    {ISOBIT_BF16, ISOBIT_GELU_TANH, 0xB8DF56FAD8DA4825}, {ISOBIT_BF16, ISOBIT_GELU_ERF, 0x291B89CC514A77A5},
    {ISOBIT_FP16, ISOBIT_GELU_TANH, 0x88F745DEDE6134A5}, {ISOBIT_FP16, ISOBIT_GELU_ERF, 0xFCFFE40E08E66F65},
    {ISOBIT_FP32, ISOBIT_GELU_TANH, 0x97A31BDC72BF11DC}, {ISOBIT_FP32, ISOBIT_GELU_ERF, 0x55EC44A7E59ACF86}};

TEST(GegluGolden, TheBytesOfTheContractStay) {
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(hash_of(golden.dtype, golden.gelu), golden.hash)
        << dtype_name(golden.dtype) << " gelu " << golden.gelu << " " << std::hex << hash_of(golden.dtype, golden.gelu);
  }
}

}  // namespace
}  // namespace isobit::geglu::test
