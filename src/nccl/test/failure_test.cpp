// Ranks that disagree, do not come, or call with something else than was agreed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "nccl/test/memory_transport.h"
#include "ops/linear_logp/test/problem.h"

namespace isobit::nccl::test {
namespace {

using linear_logp::test::Guarded;
using linear_logp::test::Outputs;
using linear_logp::test::Problem;
using linear_logp::test::random_problem;
using linear_logp::test::shard_args;

constexpr int kRanks = 3;
constexpr unsigned kWanted = Outputs::kLogp | Outputs::kEntropy;
using Change = std::function<void(isobit_linear_logp_args*)>;

// Three ranks with ids [0, 40), [40, 90) and [90, 200).
struct Ranks {
  Problem problem = random_problem({4, 16, 200, 2}, 61);
  std::vector<float> bias = std::vector<float>(200);
  Outputs outputs{problem, kWanted};

  isobit_linear_logp_args args(int rank) {
    constexpr int64_t kBorders[] = {0, 40, 90, 200};
    isobit_linear_logp_args made = shard_args(problem, kBorders[rank], kBorders[rank + 1]);
    outputs.attach(&made);
    return made;
  }
};

// What the three ranks answer when one of them has changed arguments.
std::vector<Answer> create_with(int changed, const Change& change) {
  Ranks ranks;
  MemoryNetwork network(kRanks);
  return on_ranks(kRanks, [&](int rank) {
    isobit_linear_logp_args args = ranks.args(rank);
    if (rank == changed) change(&args);
    std::unique_ptr<Group> group;
    return Group::create(network.transport(rank), &args, 20000, &group);
  });
}

void expect_disagreement(const std::string& message, const Change& change) {
  for (const Answer& answer : create_with(2, change)) {
    EXPECT_EQ(answer.status, ISOBIT_INVALID_ARGUMENT);
    EXPECT_EQ(answer.message, message);
  }
}

TEST(NcclGroupFailures, RanksThatAgree) {
  for (const Answer& answer : create_with(2, [](isobit_linear_logp_args* args) {
         args->kernel = "cpu";  // free to differ, like threads and strides
         args->threads = 1;
       })) {
    EXPECT_EQ(answer.status, ISOBIT_OK) << answer.message;
  }
}

TEST(NcclGroupFailures, RangesThatAreNoPartition) {
  const std::string start = "ranges of 3 ranks: states: expected shards that partition [0, V), got ";
  expect_disagreement(start + "an overlap at id 89", [](isobit_linear_logp_args* args) { --args->first_id; });
  expect_disagreement(start + "a gap at id 90", [](isobit_linear_logp_args* args) { ++args->first_id; });
  expect_disagreement(start + "ids up to 199 of V = 200",
                      [](isobit_linear_logp_args* args) { --args->weight.shape[0]; });
  expect_disagreement(start + "ids up to 90 of V = 200",
                      [](isobit_linear_logp_args* args) { args->weight.shape[0] = 0; });
}

TEST(NcclGroupFailures, OptionsThatDiffer) {
  const std::string same = ": expected the same on every rank, got ";
  expect_disagreement("rows N" + same + "4 on rank 0 and 3 on rank 2", [](isobit_linear_logp_args* args) {
    args->hidden.shape[0] = args->target.shape[0] = args->logp.shape[0] = args->entropy.shape[0] = 3;
  });
  expect_disagreement("width H" + same + "16 on rank 0 and 8 on rank 2",
                      [](isobit_linear_logp_args* args) { args->hidden.shape[1] = args->weight.shape[1] = 8; });
  expect_disagreement("vocab_size V" + same + "200 on rank 0 and 201 on rank 2",
                      [](isobit_linear_logp_args* args) { args->vocab_size = 201; });
  expect_disagreement("targets K" + same + "2 on rank 0 and 1 on rank 2",
                      [](isobit_linear_logp_args* args) { args->target.shape[1] = args->logp.shape[1] = 1; });
  expect_disagreement("dtype of hidden" + same + "1 on rank 0 and 2 on rank 2",
                      [](isobit_linear_logp_args* args) { args->hidden.dtype = args->weight.dtype = ISOBIT_FP16; });
  expect_disagreement("dtype of bias" + same + "0 on rank 0 and 3 on rank 2", [](isobit_linear_logp_args* args) {
    args->bias = linear_logp::test::vector(args->weight.data, ISOBIT_FP32, 110, 0);
  });
  expect_disagreement("bits of temperature_value" + same + "1065353216 on rank 0 and 1073741824 on rank 2",
                      [](isobit_linear_logp_args* args) { args->temperature_value = 2.0f; });
  expect_disagreement("bits of softcap" + same + "0 on rank 0 and 1106247680 on rank 2",
                      [](isobit_linear_logp_args* args) { args->softcap = 30.0f; });
  expect_disagreement("ignore_index" + same + "-100 on rank 0 and -1 on rank 2",
                      [](isobit_linear_logp_args* args) { args->ignore_index = -1; });
  expect_disagreement("presence of entropy" + same + "1 on rank 0 and 0 on rank 2",
                      [](isobit_linear_logp_args* args) { args->entropy = {}; });
}

void expect_refusal(const std::string& message, const Change& change) {
  const std::vector<Answer> answers = create_with(1, change);
  for (const Answer& answer : answers) EXPECT_EQ(answer.status, ISOBIT_INVALID_ARGUMENT) << answer.message;
  EXPECT_NE(answers[1].message.find(message), std::string::npos) << answers[1].message;
  for (const int other : {0, 2}) {
    EXPECT_EQ(
        answers[static_cast<size_t>(other)].message,
        "rank 1: its own arguments were refused (" + std::string(isobit_status_string(ISOBIT_INVALID_ARGUMENT)) + ")");
  }
}

// A library of another version may have refused, and may mean something else by every word but the first.
TEST(NcclGroupFailures, RecordsOfAnotherVersionAreNotRead) {
  Ranks ranks;
  std::vector<Agreement> all(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    const isobit_linear_logp_args args = ranks.args(rank);
    ASSERT_TRUE(describe(&args, &all[rank]).ok()) << last_error();
  }
  const isobit_linear_logp_args args = ranks.args(0);
  EXPECT_TRUE(check_agreement(all.data(), kRanks, args).ok()) << last_error();
  std::memset(&all[2], 0x5A, sizeof all[2]);
  all[2].field[Agreement::kVersion] = isobit_version() + 1;
  EXPECT_EQ(check_agreement(all.data(), kRanks, args).code(), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(last_error()), "version of isobit: expected the same on every rank, got " +
                                           std::to_string(isobit_version()) + " on rank 0 and " +
                                           std::to_string(isobit_version() + 1) + " on rank 2");
}

TEST(NcclGroupFailures, ARankWhoseOwnArgumentsAreRefusedTellsTheOthers) {
  expect_refusal("rank: expected none in a call over ranks, got one", [](isobit_linear_logp_args* args) {
    args->rank = args->logp;
    args->rank.dtype = ISOBIT_INT32;
  });
  expect_refusal("temperature_value", [](isobit_linear_logp_args* args) { args->temperature_value = 0.0f; });
  expect_refusal("vocab_size", [](isobit_linear_logp_args* args) { args->vocab_size = 0; });
  expect_refusal("struct_size", [](isobit_linear_logp_args* args) { args->struct_size = 8; });
}

TEST(NcclGroupFailures, AMissingRankIsAnErrorAfterTheTime) {
  Ranks ranks;
  MemoryNetwork network(kRanks);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Answer> answers = on_ranks(kRanks - 1, [&](int rank) {
    const isobit_linear_logp_args args = ranks.args(rank);
    std::unique_ptr<Group> group;
    return Group::create(network.transport(rank), &args, 50, &group);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  for (const Answer& answer : answers) EXPECT_EQ(answer.status, ISOBIT_DEVICE_ERROR) << answer.message;
}

TEST(NcclGroupFailures, LimitsOfACreation) {
  Ranks ranks;
  MemoryNetwork network(129);
  const isobit_linear_logp_args args = ranks.args(0);
  std::unique_ptr<Group> group;
  EXPECT_EQ(Group::create(network.transport(0), &args, 50, &group).code(), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(last_error(), "communicator: expected at most 128 ranks, got 129");
  EXPECT_EQ(Group::create(network.transport(0), &args, 0, &group).code(), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(last_error(), "timeout_ms: expected timeout_ms > 0, got 0");
  MemoryNetwork alone(1);
  EXPECT_EQ(Group::create(alone.transport(0), nullptr, 50, &group).code(), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(group, nullptr);
}

void expect_call_refused(const std::string& message, const Change& change) {
  Problem problem = random_problem({4, 16, 200, 2}, 62);
  Outputs outputs(problem, kWanted);
  isobit_linear_logp_args args = shard_args(problem, 0, 200);
  outputs.attach(&args);
  MemoryNetwork network(1);
  std::unique_ptr<Group> group;
  ASSERT_TRUE(Group::create(network.transport(0), &args, 1000, &group).ok()) << last_error();
  size_t minimum = 0;
  ASSERT_TRUE(group->workspace(&args, &minimum, nullptr).ok());
  Guarded workspace(minimum);
  args.workspace = workspace.data();
  args.workspace_bytes = minimum;
  change(&args);
  EXPECT_FALSE(group->linear_logp(&args, nullptr).ok());
  EXPECT_NE(std::string(last_error()).find(message), std::string::npos) << last_error();
  EXPECT_TRUE(outputs.poisoned());
  EXPECT_TRUE(workspace.poisoned());
}

TEST(NcclGroupFailures, CallsThatAreNotWhatWasAgreed) {
  expect_call_refused("rows N: expected what the ranks agreed upon, got 3 after 4", [](isobit_linear_logp_args* args) {
    args->hidden.shape[0] = args->target.shape[0] = args->logp.shape[0] = args->entropy.shape[0] = 3;
  });
  expect_call_refused("first_id: expected the range that the ranks agreed upon, got [0, 199) after [0, 200)",
                      [](isobit_linear_logp_args* args) { args->weight.shape[0] = 199; });
  expect_call_refused("workspace_bytes: expected", [](isobit_linear_logp_args* args) { --args->workspace_bytes; });
  expect_call_refused("workspace: expected a pointer, got null",
                      [](isobit_linear_logp_args* args) { args->workspace = nullptr; });
  expect_call_refused("hidden: expected data", [](isobit_linear_logp_args* args) { args->hidden.data = nullptr; });
}

}  // namespace
}  // namespace isobit::nccl::test
