// The bytes of a training step over ranks against those of one device, and what a group that trains refuses.
#include <gtest/gtest.h>

#include <algorithm>

#include "nccl/test/memory_transport.h"
#include "ops/linear_logp/test/backward_problem.h"

namespace isobit::nccl::test {
namespace {

using linear_logp::test::backward_args;
using linear_logp::test::BackwardArgs;
using linear_logp::test::Gradients;
using linear_logp::test::Guarded;
using linear_logp::test::Outputs;
using linear_logp::test::Problem;
using linear_logp::test::random_problem;
using linear_logp::test::random_upstream;
using linear_logp::test::UpstreamValues;

constexpr unsigned kEverything =
    linear_logp::test::kHiddenGradient | linear_logp::test::kWeightGradient | linear_logp::test::kBiasGradient;
constexpr unsigned kOutputs = Outputs::kLogp | Outputs::kLse | Outputs::kEntropy;
constexpr int32_t kPatience = 20000;
using Borders = std::vector<int64_t>;
using Change = std::function<void(BackwardArgs*)>;

struct Case {
  Problem problem;
  UpstreamValues upstream;
  isobit_dtype dtype = ISOBIT_FP32;  // of the gradients
  unsigned wanted = kEverything;
};

Case make_case(const linear_logp::test::Shape& shape) {
  Case c{random_problem(shape, 81, 5.0f), {}};
  c.problem.softcap = 20.0f;
  for (int64_t v = 0; v < shape.vocab; ++v) c.problem.bias.push_back(0.25f * static_cast<float>(v % 5));
  for (int64_t n = 0; n < shape.rows; ++n) c.problem.temperature.push_back(n % 2 == 0 ? 1.0f : 1.3f);
  for (int64_t k = 0; k < shape.targets && shape.rows > 4; ++k) {
    c.problem.target[shape.targets + k] = c.problem.ignore_index;
    c.problem.target[4 * shape.targets] = shape.vocab;  // outside [0, V)
  }
  c.upstream = random_upstream(c.problem, 82);
  return c;
}

// What a step leaves; of d_weight and d_bias the rank's own rows.
struct Step {
  std::string outputs, d_hidden, d_weight, d_bias;
};

// Of no rows nothing is there, but it is present.
void attach_upstream_of_no_rows(const Case& c, BackwardArgs* args) {
  if (c.problem.shape.rows == 0) args->d_lse = linear_logp::test::vector(nullptr, ISOBIT_FP32, 0);
}

// A rank's arguments. d_weight and d_bias are its rows of the whole arrays.
BackwardArgs rank_args(const Case& c, Gradients* gradients, int64_t first, int64_t last) {
  BackwardArgs args = backward_args(c.problem, c.upstream);
  args.forward = linear_logp::test::shard_args(c.problem, first, last);
  args.forward.threads = 1;
  args.subtract_p = 1;
  gradients->attach(&args);
  attach_upstream_of_no_rows(c, &args);
  const size_t element = c.dtype == ISOBIT_FP32 ? 4 : 2;
  for (isobit_tensor* tensor : {&args.d_weight, &args.d_bias}) {
    if (tensor->dtype == ISOBIT_NONE) continue;
    tensor->data = static_cast<char*>(tensor->data) + static_cast<size_t>(first * tensor->stride[0]) * element;
    tensor->shape[0] = last - first;
  }
  return args;
}

std::string rows_of(const Guarded& memory, int64_t first, int64_t last, int64_t vocab) {
  const std::string all = memory.contents();
  const size_t row = all.size() / static_cast<size_t>(vocab);
  return all.substr(static_cast<size_t>(first) * row, static_cast<size_t>(last - first) * row);
}

Step one_device(const Case& c, int64_t first, int64_t last) {
  Outputs outputs = linear_logp::test::run(c.problem, kOutputs);
  const Gradients got = linear_logp::test::run_backward(
      c.problem, c.upstream,
      {.wanted = c.wanted, .dtype = c.dtype, .subtract_p = true, .saves = true, .change = [&](BackwardArgs* args) {
         attach_upstream_of_no_rows(c, args);
       }});
  return {outputs.bytes(), got.hidden.contents(), rows_of(got.weight, first, last, c.problem.shape.vocab),
          rows_of(got.bias, first, last, c.problem.shape.vocab)};
}

// One rank's step: save, then the backward pass.
Status run_rank(MemoryNetwork* network, int rank, const Case& c, const Borders& borders, Step* step) {
  const int64_t first = borders[static_cast<size_t>(rank)];
  const int64_t last = borders[static_cast<size_t>(rank) + 1];
  Gradients gradients(c.problem, c.wanted, c.dtype);
  Outputs outputs(c.problem, kOutputs);
  BackwardArgs args = rank_args(c, &gradients, first, last);
  std::unique_ptr<Group> group;
  if (Status s = Group::create_training(network->transport(rank), &args, kPatience, &group); !s.ok()) return s;
  size_t bytes = 0;
  size_t saved_bytes = 0;
  if (Status s = group->backward_workspace(&args, &bytes, nullptr); !s.ok()) return s;
  if (Status s = passed_on(isobit_linear_logp_saved_bytes(&args, &saved_bytes)); !s.ok()) return s;
  Guarded workspace(bytes);
  Guarded saved(saved_bytes);
  args.forward.workspace = workspace.data();
  args.forward.workspace_bytes = bytes;
  args.saved = saved.data();
  BackwardArgs forward = args;
  outputs.attach(&forward.forward);
  if (Status s = group->save(&forward, nullptr); !s.ok()) return s;
  if (Status s = group->backward(&args, nullptr); !s.ok()) return s;
  EXPECT_EQ(group->backward_bytes(), static_cast<size_t>(network->bytes_sent(rank)));
  EXPECT_TRUE(workspace.guards_intact() && saved.guards_intact() && gradients.guards_intact());
  const int64_t vocab = c.problem.shape.vocab;
  *step = {outputs.bytes(), gradients.hidden.contents(), rows_of(gradients.weight, first, last, vocab),
           rows_of(gradients.bias, first, last, vocab)};
  return Status();
}

std::vector<Step> run_ranks(MemoryNetwork* network, const Case& c, const Borders& borders) {
  std::vector<Step> steps(static_cast<size_t>(network->ranks()));
  for (const Answer& answer : on_ranks(network->ranks(), [&](int rank) {
         return run_rank(network, rank, c, borders, &steps[static_cast<size_t>(rank)]);
       }))
    EXPECT_EQ(answer.status, ISOBIT_OK) << answer.message;
  return steps;
}

void expect_one_device(const Case& c, const Borders& borders) {
  const int ranks = static_cast<int>(borders.size()) - 1;
  MemoryNetwork network(ranks);
  const std::vector<Step> steps = run_ranks(&network, c, borders);
  for (int rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE(testing::Message() << "rank " << rank << " of " << ranks);
    const Step& found = steps[static_cast<size_t>(rank)];
    const Step one = one_device(c, borders[static_cast<size_t>(rank)], borders[static_cast<size_t>(rank) + 1]);
    EXPECT_TRUE(found.outputs == one.outputs);
    EXPECT_TRUE(found.d_hidden == one.d_hidden);
    EXPECT_TRUE(found.d_weight == one.d_weight);
    EXPECT_TRUE(found.d_bias == one.d_bias);
  }
  const bool moves = (c.wanted & linear_logp::test::kHiddenGradient) != 0 && c.problem.shape.rows > 0;
  EXPECT_EQ(network.moves(), moves ? 2 : 0);
}

Borders equal_shares(int64_t vocab, int ranks) {
  Borders borders;
  for (int i = 0; i <= ranks; ++i) borders.push_back(vocab * i / ranks);
  return borders;
}

TEST(NcclBackward, EqualSharesOfOneToSixteenRanks) {
  const Case c = make_case({21, 24, 1024, 2});
  for (const int ranks : {1, 2, 4, 8, 16}) expect_one_device(c, equal_shares(1024, ranks));
}

TEST(NcclBackward, WholeSegmentsUnevenlyAndRanksWithoutIds) {
  const Case c = make_case({7, 24, 1001, 1});  // segments of 63 ids, the last of 56
  expect_one_device(c, {0, 63, 1001});
  expect_one_device(c, {0, 63 * 5, 63 * 15, 1001});
  expect_one_device(c, {0, 0, 63 * 3, 63 * 3, 1001, 1001});
}

TEST(NcclBackward, FewerRowsThanRanks) {
  for (const int64_t rows : {0, 1, 3}) expect_one_device(make_case({rows, 16, 320, 1}), equal_shares(320, 4));
}

TEST(NcclBackward, AFaultInAMessageIsSeen) {
  const Case c = make_case({21, 24, 320, 1});
  MemoryNetwork network(2, MemoryNetwork::Fault::kLostMessage);
  const std::string one = one_device(c, 0, 160).d_hidden;
  for (const Step& step : run_ranks(&network, c, {0, 160, 320})) EXPECT_NE(step.d_hidden, one);
}

TEST(NcclBackward, GradientsInBf16) {
  Case c = make_case({21, 24, 512, 1});
  c.dtype = ISOBIT_BF16;
  expect_one_device(c, equal_shares(512, 2));
}

// Borders are free, and nothing but the states travels.
TEST(NcclBackward, AnyBordersWithoutTheGradientOfHidden) {
  Case c = make_case({9, 24, 700, 2});
  c.wanted = linear_logp::test::kWeightGradient | linear_logp::test::kBiasGradient;
  expect_one_device(c, {0, 1, 333, 700});
}

void expect_creation(const std::string& message, const Borders& borders, const Change& change_rank_1) {
  const Case c = make_case({5, 16, 320, 1});
  MemoryNetwork network(2);
  Gradients gradients(c.problem, c.wanted, c.dtype);
  for (const Answer& answer : on_ranks(2, [&](int rank) {
         const auto i = static_cast<size_t>(rank);
         BackwardArgs args = rank_args(c, &gradients, borders[i], borders[i + 1]);
         if (rank == 1) change_rank_1(&args);
         std::unique_ptr<Group> group;
         return Group::create_training(network.transport(rank), &args, kPatience, &group);
       })) {
    EXPECT_EQ(answer.status, ISOBIT_INVALID_ARGUMENT);
    EXPECT_EQ(answer.message, message);
  }
}

TEST(NcclBackward, DisagreementsAreErrorsOnEveryRank) {
  const Borders equal = {0, 160, 320};
  expect_creation(
      "rank 0: first_id: expected a shard whose borders are multiples of ceil(V / 16), or V, got [0, 161), "
      "ceil(V / 16) = 20",
      {0, 161, 320}, [](BackwardArgs*) {});
  expect_creation(
      "upstream gradients (1 d_logp, 2 d_lse, 4 d_entropy): expected the same on every rank, got 7 on rank 0 and 5 on "
      "rank 1",
      equal, [](BackwardArgs* args) { args->d_lse = {}; });
  expect_creation("dtype of d_hidden: expected the same on every rank, got 3 on rank 0 and 0 on rank 1", equal,
                  [](BackwardArgs* args) { args->d_hidden = {}; });
}

TEST(NcclBackward, AGroupThatTrainsBesideOneThatDoesNot) {
  const Case c = make_case({5, 16, 320, 1});
  MemoryNetwork network(2);
  Gradients gradients(c.problem, c.wanted, c.dtype);
  for (const Answer& answer : on_ranks(2, [&](int rank) {
         const BackwardArgs args = rank_args(c, &gradients, rank * 160, rank * 160 + 160);
         std::unique_ptr<Group> group;
         if (rank == 1) return Group::create_training(network.transport(rank), &args, kPatience, &group);
         const isobit_linear_logp_args forward = training_forward(args);
         return Group::create(network.transport(rank), &forward, kPatience, &group);
       }))
    EXPECT_EQ(answer.message,
              "presence of a backward pass: expected the same on every rank, got 0 on rank 0 and 1 on rank 1");
}

// Calls of a group of one rank that are refused and write nothing.
void expect_refused(const std::string& message, bool save, const Change& change) {
  const Case c = make_case({5, 16, 320, 1});
  MemoryNetwork network(1);
  Gradients gradients(c.problem, c.wanted, c.dtype);
  BackwardArgs args = rank_args(c, &gradients, 0, 320);
  std::unique_ptr<Group> group;
  ASSERT_TRUE(Group::create_training(network.transport(0), &args, kPatience, &group).ok()) << last_error();
  size_t bytes = 0;
  ASSERT_TRUE(group->backward_workspace(&args, &bytes, nullptr).ok()) << last_error();
  Guarded workspace(bytes);
  Guarded saved(1024);
  Outputs outputs(c.problem, kOutputs);
  args.forward.workspace = workspace.data();
  args.forward.workspace_bytes = bytes;
  args.saved = saved.data();
  if (save) outputs.attach(&args.forward);
  change(&args);
  EXPECT_FALSE((save ? group->save(&args, nullptr) : group->backward(&args, nullptr)).ok());
  EXPECT_NE(std::string(last_error()).find(message), std::string::npos) << last_error();
  EXPECT_TRUE(workspace.poisoned() && saved.poisoned() && outputs.poisoned() && gradients.poisoned());
}

TEST(NcclBackward, CallsThatAreRefused) {
  expect_refused("subtract_p: expected 1 in a call over ranks, got 0", true, [](auto* args) { args->subtract_p = 0; });
  expect_refused("saved: expected a pointer, got null", true, [](auto* args) { args->saved = nullptr; });
  expect_refused("presence of entropy: expected what the ranks agreed upon, got 0 after 1", true,
                 [](auto* args) { args->forward.entropy = {}; });
  expect_refused("saved: expected a pointer, got null", false, [](auto* args) { args->saved = nullptr; });
  expect_refused("workspace_bytes: expected", false, [](auto* args) { --args->forward.workspace_bytes; });
  expect_refused("d_hidden: expected data", false, [](auto* args) { args->d_hidden.data = nullptr; });
  expect_refused("dtype of d_hidden: expected what the ranks agreed upon, got 0 after 3", false,
                 [](auto* args) { args->d_hidden = {}; });
  expect_refused("rows without gaps", false, [](auto* args) { args->d_hidden.stride[0] = 17; });
  expect_refused("struct_size", false, [](auto* args) { args->struct_size = 1; });
}

TEST(NcclBackward, AGroupWithoutTrainingRefusesIt) {
  const Case c = make_case({5, 16, 320, 1});
  MemoryNetwork network(1);
  Gradients gradients(c.problem, c.wanted, c.dtype);
  const BackwardArgs args = rank_args(c, &gradients, 0, 320);
  std::unique_ptr<Group> group;
  ASSERT_TRUE(Group::create(network.transport(0), &args.forward, kPatience, &group).ok()) << last_error();
  EXPECT_EQ(group->backward(&args, nullptr).code(), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(last_error(), "tp: expected an agreement of isobit_tp_create_training, got one of isobit_tp_create");
  EXPECT_EQ(group->backward_bytes(), 0u);
}

}  // namespace
}  // namespace isobit::nccl::test
