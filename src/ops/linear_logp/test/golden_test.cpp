// Logits of the operator against an H200: 256 rows of 64 ids at H = 640 and H = 4096, bf16 and fp16, as target logits
// and as the raw logits of a shard's state.
#include <gtest/gtest.h>

#include <string>

#include "numerics/test/golden.h"
#include "numerics/test/golden_inputs.h"
#include "ops/linear_logp/state.h"
#include "ops/linear_logp/test/problem.h"
#include "ops/linear_logp/test/targets.h"

namespace isobit::linear_logp::test {
namespace {

namespace golden = numerics::golden;

class LogitGolden : public testing::TestWithParam<golden::ChainCase> {};

// The case's operands, with every id as a target of every row.
Problem problem_of(const golden::ChainCase& chain) {
  const golden::Inputs inputs =
      chain.fp16 ? golden::make_inputs<numerics::Fp16>(chain) : golden::make_inputs<numerics::Bf16>(chain);
  Problem p;
  p.shape = {golden::kRows, chain.k, golden::kColumns, golden::kColumns};
  p.dtype = chain.fp16 ? ISOBIT_FP16 : ISOBIT_BF16;
  p.hidden_stride = chain.k;
  p.weight_stride = chain.k;
  p.hidden = inputs.a;
  p.weight = inputs.b;
  for (int i = 0; i < golden::kRows * golden::kColumns; ++i) p.target.push_back(i % golden::kColumns);
  return p;
}

std::vector<uint32_t> device_logits(const golden::ChainCase& chain) {
  golden::FileHeader header;
  return golden::read_outputs(std::string(ISOBIT_SOURCE_DIR) + "/src/numerics/test/golden", chain, &header);
}

TEST_P(LogitGolden, TargetLogitsHaveTheDevicesBits) {
  const std::vector<uint32_t> z = device_logits(GetParam());
  ASSERT_FALSE(z.empty());
  const Problem p = problem_of(GetParam());
  const Outputs out = run(p, Outputs::kLogit | Outputs::kLogp);
  for (int64_t n = 0; n < golden::kRows; ++n) {
    for (int64_t v = 0; v < golden::kColumns; ++v) {
      ASSERT_EQ(bits_of(out.logit_at(n, v)), z[static_cast<size_t>(n * golden::kColumns + v)]) << n << " " << v;
    }
  }
}

TEST_P(LogitGolden, RawLogitsOfAShardHaveTheDevicesBits) {
  const std::vector<uint32_t> z = device_logits(GetParam());
  ASSERT_FALSE(z.empty());
  const Problem p = problem_of(GetParam());
  for_each_target([&] {
    // Target logits come from the scalar model already.
    if (isobit::cpu::best_simd_target() == isobit::cpu::SimdTarget::kScalar) return;
    Outputs outputs(p, Outputs::kLogp);
    isobit_linear_logp_args args = p.args();
    outputs.attach(&args);
    args.vocab_size = golden::kColumns + 1;  // so the shard's only leaf is incomplete
    size_t bytes = 0;
    size_t minimum = 0;
    ASSERT_EQ(isobit_linear_logp_state_bytes(&args, &bytes), ISOBIT_OK);
    ASSERT_EQ(isobit_linear_logp_workspace(&args, &minimum, nullptr), ISOBIT_OK);
    Guarded state(bytes);
    Guarded workspace(minimum);
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.bytes();
    ASSERT_EQ(isobit_linear_logp_shard(&args, state.data(), nullptr), ISOBIT_OK) << isobit_last_error();
    for (int64_t n = 0; n < golden::kRows; ++n) {
      for (int64_t v = 0; v < golden::kColumns; ++v) {
        ASSERT_EQ(state.as<uint32_t>()[v * golden::kRows + n], z[static_cast<size_t>(n * golden::kColumns + v)]);
      }
    }
  });
}

std::vector<golden::ChainCase> plain_cases() {
  std::vector<golden::ChainCase> cases;
  for (const golden::ChainCase& chain : golden::kCases) {
    if (chain.kind == golden::Kind::kPlain) cases.push_back(chain);
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<golden::ChainCase>& chain) { return chain.param.name; }

INSTANTIATE_TEST_SUITE_P(H200, LogitGolden, testing::ValuesIn(plain_cases()), name_of);

}  // namespace
}  // namespace isobit::linear_logp::test
