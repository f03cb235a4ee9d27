// Shard passes and merges of states from their PTX: bytes of the CPU backend.
#include <algorithm>

#include "ops/linear_logp/test/emulated_call.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kWithEntropy = Outputs::kLogp | Outputs::kLse | Outputs::kEntropy | Outputs::kLogit;
constexpr unsigned kEverything = kWithEntropy | Outputs::kRank;
const std::string kFolder = ISOBIT_BINARY_DIR "/ptx/linear_logp";

// Shards between the borders, merged.
void expect_shards(const Problem& problem, const std::vector<int64_t>& borders, const char* kernel) {
  const Outputs logits = run(problem, Outputs::kLogit);
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3});
  const ScopedRuntime scope(&device);
  Call call(&device, problem, kernel);
  Outputs found(problem, kEverything);
  call.attach(&found);
  const ptx::DeviceBuffer all_logits = device.upload(logits.target_logit.data(), logits.target_logit.bytes());
  std::vector<isobit_linear_logp_state> states;
  const isobit_linear_logp_args whole = call.args();
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    isobit_linear_logp_args& args = call.args();
    args = whole;
    args.weight.data = static_cast<uint16_t*>(whole.weight.data) + borders[i] * problem.weight_stride;
    args.weight.shape[0] = args.bias.shape[0] = borders[i + 1] - borders[i];
    args.bias.data = static_cast<float*>(whole.bias.data) + borders[i];
    args.first_id = borders[i];
    args.vocab_size = problem.shape.vocab;
    args.target_logit.data = all_logits.data();
    size_t bytes = 0;
    ASSERT_EQ(isobit_linear_logp_state_bytes(&args, &bytes), ISOBIT_OK) << isobit_last_error();
    void* const state = call.allocate(bytes);
    call.take_workspace();
    ASSERT_EQ(isobit_linear_logp_shard(&args, state, nullptr), ISOBIT_OK) << isobit_last_error();
    states.push_back({borders[i], borders[i + 1] - borders[i], state});
  }
  call.args() = whole;
  call.args().hidden = call.args().weight = call.args().bias = {};
  call.args().vocab_size = problem.shape.vocab;
  ASSERT_EQ(isobit_linear_logp_merge(&call.args(), states.data(), static_cast<int32_t>(states.size()), nullptr),
            ISOBIT_OK)
      << isobit_last_error();
  call.fetch();
  expect_clean(device, kernel);
  const Outputs expected = run(problem, kEverything);
  for (int64_t row = 0; row < expected.rows; ++row) ASSERT_EQ(expected.row_bytes(row), found.row_bytes(row)) << row;
}

TEST(LinearLogpEmulated, Shards) {
  for (const int64_t rows : {3, 66}) {
    const Problem problem = with_options({rows, 64, 600, 2}, 11);
    for (const char* kernel : {"sm90", "sm80"}) expect_shards(problem, {0, 1, 70, 192, 325, 326, 600}, kernel);
  }
}

// Nodes above those that a round of the shard pass holds, and two rounds.
TEST(LinearLogpEmulated, WideShards) {
  expect_shards(with_options({2, 8, 70001, 1}, 13), {0, 70001}, "sm90");
  expect_shards(with_options({1, 8, 264001, 1}, 14), {0, 1000, 264001}, "sm90");
}

// More shards than the merge plans at a time, their states from the CPU backend.
TEST(LinearLogpEmulated, ManyShardsMerged) {
  const Problem problem = with_options({70, 8, 60000, 1}, 12);
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3});
  const ScopedRuntime scope(&device);
  Call call(&device, problem, "sm90");
  Outputs found(problem, kWithEntropy);
  std::vector<ptx::DeviceBuffer> on_device;
  std::vector<isobit_linear_logp_state> states;
  for (int64_t first = 0; first < 60000; first += 469) {
    isobit_linear_logp_args args = shard_args(problem, first, std::min<int64_t>(first + 469, 60000));
    found.attach(&args);
    size_t bytes = 0;
    ASSERT_EQ(isobit_linear_logp_state_bytes(&args, &bytes), ISOBIT_OK) << isobit_last_error();
    ASSERT_EQ(isobit_linear_logp_workspace(&args, &args.workspace_bytes, nullptr), ISOBIT_OK) << isobit_last_error();
    Guarded workspace(args.workspace_bytes);
    args.workspace = workspace.data();
    Guarded state(bytes);
    ASSERT_EQ(isobit_linear_logp_shard(&args, state.data(), nullptr), ISOBIT_OK) << isobit_last_error();
    on_device.push_back(device.upload(state.data(), bytes));
    states.push_back({first, args.weight.shape[0], on_device.back().data()});
  }
  call.attach(&found);
  call.args().hidden = call.args().weight = call.args().bias = {};
  call.args().vocab_size = problem.shape.vocab;
  ASSERT_EQ(isobit_linear_logp_merge(&call.args(), states.data(), 128, nullptr), ISOBIT_OK) << isobit_last_error();
  call.fetch();
  expect_clean(device, "many shards");
  EXPECT_EQ(run(problem, kWithEntropy).bytes(), found.bytes());
}

}  // namespace
}  // namespace isobit::linear_logp::test
