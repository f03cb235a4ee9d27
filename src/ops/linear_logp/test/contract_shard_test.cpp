// The rules of shard and merge calls, and of the check of targets and temperatures.
#include <algorithm>
#include <limits>

#include "ops/linear_logp/test/contract_call.h"

namespace isobit::linear_logp::test {
namespace {

// Ids 4 to 12 of 20 as a shard, with its state; no top list.
struct ShardCall : Call {
  ShardCall() {
    args.first_id = 4;
    args.vocab_size = 20;
    args.weight = matrix(problem.weight.data() + 4 * 8, ISOBIT_BF16, 8, 8);
    args.bias.shape[0] = 8;
    args.top_id = args.top_logp = {};
    std::fill_n(logits, 6, 0.0f);
    args.target_logit = matrix(logits, ISOBIT_FP32, 3, 2);
    size_t bytes = 0;
    EXPECT_EQ(isobit_linear_logp_state_bytes(&args, &bytes), ISOBIT_OK) << isobit_last_error();
    state = Guarded(bytes);
  }
  float logits[6];
  Guarded state;
};

void expect_shard_refused(const char* message, const std::function<void(ShardCall*, void**)>& change) {
  SCOPED_TRACE(message);
  ShardCall call;
  void* state = call.state.data();
  change(&call, &state);
  EXPECT_EQ(isobit_linear_logp_shard(&call.args, state, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(isobit_last_error()).find(message), std::string::npos) << isobit_last_error();
  EXPECT_TRUE(call.state.poisoned());
}

TEST(Contract, ShardCalls) {
  ShardCall call;
  EXPECT_EQ(isobit_linear_logp_shard(&call.args, call.state.data(), nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_TRUE(call.outputs->poisoned());
  expect_shard_refused("vocab_size: expected the size of the whole vocabulary in a shard or merge call, got 0",
                       [](ShardCall* c, void**) { c->args.vocab_size = 0; });
  expect_shard_refused("first_id: expected 0 <= first_id <= 2147483647",
                       [](ShardCall* c, void**) { c->args.first_id = kMaxVocab + 1; });
  expect_shard_refused("top_id: expected no top list in a shard or merge call, got one", [](ShardCall* c, void**) {
    c->args.top_id = matrix(c->outputs->top_id.data(), ISOBIT_INT32, 3, 4);
  });
  expect_shard_refused("state: expected a pointer, got null", [](ShardCall*, void** state) { *state = nullptr; });
  expect_shard_refused("state: expected memory aligned to 16 bytes",
                       [](ShardCall*, void** state) { *state = static_cast<char*>(*state) + 8; });
  expect_shard_refused("state: expected memory apart from weight", [](ShardCall* c, void** state) {
    *state = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(c->args.weight.data) / 16 * 16);
  });
  expect_shard_refused("target_logit: expected the targets' logits in a shard call with rank, got none",
                       [](ShardCall* c, void**) { c->args.target_logit = {}; });
  expect_shard_refused("target_logit: expected data, got a null pointer",
                       [](ShardCall* c, void**) { c->args.target_logit.data = nullptr; });
}

TEST(Contract, ShardsThatHoldNothing) {
  ShardCall call;
  call.args.weight.shape[0] = call.args.bias.shape[0] = 0;
  call.args.weight.data = call.args.bias.data = nullptr;
  EXPECT_EQ(isobit_linear_logp_shard(&call.args, call.state.data(), nullptr), ISOBIT_OK) << isobit_last_error();
  ShardCall padding;  // every row of its weight is beyond V
  padding.args.first_id = 20;
  EXPECT_EQ(isobit_linear_logp_shard(&padding.args, padding.state.data(), nullptr), ISOBIT_OK) << isobit_last_error();
}

TEST(Contract, OutputsOfShardCallsNeedNoMemory) {
  ShardCall call;
  for (isobit_tensor* t : {&call.args.logp, &call.args.lse, &call.args.entropy, &call.args.rank}) t->data = nullptr;
  EXPECT_EQ(isobit_linear_logp_shard(&call.args, call.state.data(), nullptr), ISOBIT_OK) << isobit_last_error();
}

// Two shards of 20 ids, [0, 12) and [12, 20); their contents are zeros.
struct MergeCall : Call {
  MergeCall() {
    args.hidden = args.weight = args.bias = args.temperature = args.top_id = args.top_logp = {};
    args.vocab_size = 20;
    args.workspace = nullptr;
    args.workspace_bytes = 0;
  }
  alignas(16) char memory[2][4096] = {};
  isobit_linear_logp_state states[3] = {{12, 8, memory[1]}, {0, 12, memory[0]}, {7, 0, nullptr}};
};

void expect_merge(const char* message, const std::function<void(MergeCall*)>& change, int32_t count = 3) {
  SCOPED_TRACE(message);
  MergeCall call;
  change(&call);
  const isobit_status status = isobit_linear_logp_merge(&call.args, call.states, count, nullptr);
  EXPECT_EQ(status, *message == 0 ? ISOBIT_OK : ISOBIT_INVALID_ARGUMENT) << isobit_last_error();
  if (status == ISOBIT_OK) return;
  EXPECT_NE(std::string(isobit_last_error()).find(message), std::string::npos) << isobit_last_error();
  EXPECT_TRUE(call.outputs->poisoned());
}

TEST(Contract, Merges) {
  expect_merge("", [](MergeCall*) {});
  expect_merge("", [](MergeCall* c) {  // a merge has no use for it, so it is not even looked at
    c->args.hidden = isobit_tensor{c, ISOBIT_BF16, ISOBIT_CPU, 0, INT32_MAX, {}, {}};
  });
  expect_merge("states: expected shards that partition [0, V), got a gap at id 12",
               [](MergeCall* c) { c->states[0].first_id = 13; });
  expect_merge("states: expected shards that partition [0, V), got an overlap at id 11",
               [](MergeCall* c) { c->states[0].first_id = 11; });
  expect_merge("states: expected shards that partition [0, V), got a gap at id 0", [](MergeCall* c) {
    c->states[1] = {1, 11, c->memory[0]};
  });
  expect_merge("got ids up to 19 of V = 20", [](MergeCall* c) { c->states[0].count = 7; });
  expect_merge("states: expected ranges within [0, V), got states[0]: first_id 12, count 21",
               [](MergeCall* c) { c->states[0].count = 21; });
  expect_merge("states: expected ranges within [0, V)", [](MergeCall* c) { c->states[0].count = -1; });
  expect_merge("states: expected ranges within [0, V)", [](MergeCall* c) { c->states[1].first_id = -1; });
  expect_merge("states: expected the data of each, got states[1].data null",
               [](MergeCall* c) { c->states[1].data = nullptr; });
  expect_merge("states: expected data aligned to 16 bytes", [](MergeCall* c) { c->states[1].data = c->memory[0] + 4; });
  expect_merge(
      "count: expected 1 <= count <= 128, got count = 0", [](MergeCall*) {}, 0);
  expect_merge(
      "count: expected 1 <= count <= 128, got count = 129", [](MergeCall*) {}, 129);
  expect_merge("vocab_size: expected the size of the whole vocabulary", [](MergeCall* c) { c->args.vocab_size = 0; });
  expect_merge("top_id: expected no top list",
               [](MergeCall* c) { c->args.top_id = matrix(c->outputs->top_id.data(), ISOBIT_INT32, 3, 4); });
  expect_merge("logp: expected memory apart from states", [](MergeCall* c) { c->args.logp.data = c->memory[1]; });
  expect_merge("logp: expected at least one output, got none", [](MergeCall* c) {
    for (isobit_tensor* t : {&c->args.logp, &c->args.lse, &c->args.entropy, &c->args.rank, &c->args.target_logit}) {
      *t = {};
    }
  });
}

TEST(Contract, ManyShardsAreTakenInAnyOrder) {
  MergeCall call;
  std::vector<isobit_linear_logp_state> states;
  for (int64_t id = 19; id >= 0; --id) states.push_back({id, 1, call.memory[0]});
  states.resize(kMaxShards, {3, 0, nullptr});
  EXPECT_EQ(isobit_linear_logp_merge(&call.args, states.data(), kMaxShards, nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(isobit_linear_logp_merge(&call.args, nullptr, 1, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(isobit_last_error(), "states: expected a pointer, got null");
}

int64_t first_bad_row(const Call& call) {
  int64_t row = -2;
  EXPECT_EQ(isobit_linear_logp_validate(&call.args, &row, nullptr), ISOBIT_OK) << isobit_last_error();
  return row;
}

TEST(Contract, ValidateFindsTheFirstRowWithABadTargetOrTemperature) {
  Call call;
  EXPECT_EQ(first_bad_row(call), -1);
  call.problem.target[5] = 20;
  EXPECT_EQ(first_bad_row(call), 2);
  call.problem.target[3] = -1;
  EXPECT_EQ(first_bad_row(call), 1);
  call.problem.temperature[0] = 0.0f;
  EXPECT_EQ(first_bad_row(call), 0);
  call.problem.temperature[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(first_bad_row(call), 0);
  call.problem.target[0] = call.problem.target[1] = -100;  // ignored: its temperature does not matter
  EXPECT_EQ(first_bad_row(call), 1);
  call.problem.target[3] = -100;  // one ignored id of a row hides only itself
  EXPECT_EQ(first_bad_row(call), 2);
  call.args.vocab_size = 19;
  call.problem.target[5] = 18;
  EXPECT_EQ(first_bad_row(call), -1);
  call.problem.target[5] = 19;
  EXPECT_EQ(first_bad_row(call), 2);
  call.args.target.data = nullptr;
  int64_t row = 0;
  EXPECT_EQ(isobit_linear_logp_validate(&call.args, &row, nullptr), ISOBIT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace isobit::linear_logp::test
