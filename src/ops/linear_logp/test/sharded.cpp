#include <gtest/gtest.h>

#include "ops/linear_logp/test/problem.h"

namespace isobit::linear_logp::test {
namespace {

struct ShardRun {
  int64_t first_id;
  int64_t count;
  Guarded state;
};

void run_shard(isobit_linear_logp_args args, int64_t first, int64_t last, int threads, std::vector<ShardRun>* shards) {
  args.threads = threads;
  size_t minimum = 0;
  size_t bytes = 0;
  ASSERT_EQ(isobit_linear_logp_workspace(&args, &minimum, nullptr), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(isobit_linear_logp_state_bytes(&args, &bytes), ISOBIT_OK) << isobit_last_error();
  Guarded workspace(minimum);
  ShardRun shard{first, last - first, Guarded(bytes)};
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.bytes();
  ASSERT_EQ(isobit_linear_logp_shard(&args, shard.state.data(), nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_TRUE(workspace.guards_intact());
  EXPECT_TRUE(shard.state.guards_intact());
  shards->push_back(std::move(shard));
}

Outputs run_once(const Problem& p, const std::vector<int64_t>& cuts, unsigned wanted, int threads,
                 const Outputs* logits) {
  Outputs outputs(p, wanted);
  std::vector<ShardRun> shards;
  std::vector<int64_t> borders = {0};
  borders.insert(borders.end(), cuts.begin(), cuts.end());
  borders.push_back(p.shape.vocab);
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    isobit_linear_logp_args args = shard_args(p, borders[i], borders[i + 1]);
    outputs.attach(&args);
    if (logits != nullptr) args.target_logit.data = const_cast<void*>(logits->target_logit.data());
    run_shard(args, borders[i], borders[i + 1], threads, &shards);
  }
  EXPECT_TRUE(outputs.poisoned()) << "a shard call wrote outputs";
  std::vector<isobit_linear_logp_state> states;
  for (const ShardRun& shard : shards) states.insert(states.begin(), {shard.first_id, shard.count, shard.state.data()});
  isobit_linear_logp_args args = p.args();
  args.hidden = {};
  args.weight = {};
  args.bias = {};
  args.vocab_size = p.shape.vocab;
  outputs.attach(&args);
  EXPECT_EQ(isobit_linear_logp_merge(&args, states.data(), static_cast<int32_t>(states.size()), nullptr), ISOBIT_OK)
      << isobit_last_error();
  EXPECT_TRUE(outputs.guards_intact());
  return outputs;
}

}  // namespace

isobit_linear_logp_args shard_args(const Problem& p, int64_t first, int64_t last) {
  isobit_linear_logp_args args = p.args();
  args.weight =
      matrix(p.weight.data() + first * p.weight_stride, p.dtype, last - first, p.shape.width, p.weight_stride);
  if (!p.bias.empty()) args.bias = vector(p.bias.data() + first, ISOBIT_FP32, last - first);
  args.first_id = first;
  args.vocab_size = p.shape.vocab;
  return args;
}

Outputs run_sharded(const Problem& p, const std::vector<int64_t>& cuts, unsigned wanted, int threads) {
  if ((wanted & Outputs::kRank) == 0) return run_once(p, cuts, wanted, threads, nullptr);
  const Outputs logits = run_once(p, cuts, Outputs::kLogit, threads, nullptr);
  return run_once(p, cuts, wanted | Outputs::kLogit, threads, &logits);
}

}  // namespace isobit::linear_logp::test
