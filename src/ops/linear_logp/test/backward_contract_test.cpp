// Every rule of the backward pass's arguments, one over and one under.
#include <gtest/gtest.h>

#include <memory>

#include "ops/linear_logp/test/backward_problem.h"

namespace isobit::linear_logp::test {
namespace {

using Change = std::function<void(BackwardArgs*)>;

// A call that is legal as it stands, with every tensor present.
struct Call {
  Call() {
    problem.bias.assign(20, 0.5f);
    problem.temperature.assign(3, 1.5f);
    upstream = random_upstream(problem, 2);
    gradients = std::make_unique<Gradients>(problem, kHiddenGradient | kWeightGradient | kBiasGradient, ISOBIT_FP32);
    args = backward_args(problem, upstream);
    gradients->attach(&args);
    workspace = Guarded(16 << 20);
    args.forward.workspace = workspace.data();
    args.forward.workspace_bytes = workspace.bytes();
  }
  Problem problem = random_problem({3, 8, 20, 2}, 1);
  UpstreamValues upstream;
  std::unique_ptr<Gradients> gradients;
  Guarded workspace;
  BackwardArgs args;
};

void expect_refused(const char* message, const Change& change, isobit_status status = ISOBIT_INVALID_ARGUMENT) {
  SCOPED_TRACE(message);
  Call call;
  change(&call.args);
  EXPECT_EQ(isobit_linear_logp_backward(&call.args, nullptr), status);
  EXPECT_NE(std::string(isobit_last_error()).find(message), std::string::npos) << isobit_last_error();
  EXPECT_TRUE(call.gradients->poisoned()) << "a refused call wrote gradients";
  EXPECT_TRUE(call.workspace.poisoned()) << "a refused call wrote its workspace";
}

void expect_taken(const char* what, const Change& change) {
  SCOPED_TRACE(what);
  Call call;
  change(&call.args);
  EXPECT_EQ(isobit_linear_logp_backward(&call.args, nullptr), ISOBIT_OK) << isobit_last_error();
}

TEST(BackwardContract, Taken) {
  expect_taken("as it is", [](BackwardArgs*) {});
  expect_taken("bf16 gradients", [](BackwardArgs* a) { a->d_hidden.dtype = a->d_bias.dtype = ISOBIT_BF16; });
  expect_taken("no upstream but one", [](BackwardArgs* a) { a->d_logp = a->d_lse = {}; });
  expect_taken("the table's row", [](BackwardArgs* a) { a->forward.kernel = "cpu"; });
}

TEST(BackwardContract, Header) {
  EXPECT_EQ(isobit_linear_logp_backward(nullptr, nullptr), ISOBIT_INVALID_ARGUMENT);
  expect_refused("struct_size", [](BackwardArgs* a) { --a->struct_size; });
  expect_refused("struct_size", [](BackwardArgs* a) { --a->forward.struct_size; });
  expect_refused("accumulate", [](BackwardArgs* a) { a->accumulate = 2; });
  expect_refused("subtract_p", [](BackwardArgs* a) { a->subtract_p = -1; });
  expect_refused("reserved", [](BackwardArgs* a) { a->reserved = 1; });
  expect_refused("threads", [](BackwardArgs* a) { a->forward.threads = 1025; });
  expect_refused("kernel", [](BackwardArgs* a) { a->forward.kernel = "abacus"; });
}

TEST(BackwardContract, ForwardPart) {
  expect_refused("bf16 in a backward call",
                 [](BackwardArgs* a) { a->forward.hidden.dtype = a->forward.weight.dtype = ISOBIT_FP16; });
  expect_refused("rank", [](BackwardArgs* a) {
    a->forward.rank = a->d_hidden;
    a->forward.rank.dtype = ISOBIT_INT32;
    a->forward.rank.shape[1] = 2;
  });
  expect_refused("target_logit", [](BackwardArgs* a) {
    a->forward.target_logit = a->d_hidden;
    a->forward.target_logit.shape[1] = 2;
  });
  expect_refused("first_id", [](BackwardArgs* a) { a->forward.first_id = 1; });
  expect_refused("weight", [](BackwardArgs* a) { a->forward.vocab_size = 21; });
}

TEST(BackwardContract, Upstream) {
  expect_refused("at least one of d_logp", [](BackwardArgs* a) { a->d_logp = a->d_lse = a->d_entropy = {}; });
  expect_refused("d_logp", [](BackwardArgs* a) { a->d_logp.dtype = ISOBIT_BF16; });
  expect_refused("d_logp", [](BackwardArgs* a) { a->d_logp.rank = 1; });
  expect_refused("d_logp", [](BackwardArgs* a) { a->d_logp.shape[1] = 3; });
  expect_refused("d_lse", [](BackwardArgs* a) { a->d_lse.shape[0] = 2; });
  expect_refused("d_entropy", [](BackwardArgs* a) { a->d_entropy.data = nullptr; });
  expect_refused("d_entropy", [](BackwardArgs* a) { a->d_entropy.device_type = ISOBIT_CUDA; });
}

TEST(BackwardContract, GradientsOfTheCall) {
  expect_refused("at least one gradient", [](BackwardArgs* a) { a->d_hidden = a->d_weight = a->d_bias = {}; });
  expect_refused("d_hidden", [](BackwardArgs* a) { a->d_hidden.dtype = ISOBIT_FP16; });
  expect_refused("d_hidden", [](BackwardArgs* a) { a->d_hidden.shape[0] = 2; });
  expect_refused("d_hidden", [](BackwardArgs* a) { a->d_hidden.stride[0] = 7; });
  expect_refused("d_weight", [](BackwardArgs* a) { a->d_weight.shape[0] = 19; });
  expect_refused("d_weight", [](BackwardArgs* a) { a->d_weight.stride[1] = 2; });
  expect_refused("d_bias", [](BackwardArgs* a) { a->d_bias.stride[0] = 0; });
  expect_refused("d_bias: expected a bias", [](BackwardArgs* a) { a->forward.bias = {}; });
  expect_refused("fp32 with accumulate", [](BackwardArgs* a) {
    a->accumulate = 1;
    a->d_weight.dtype = ISOBIT_BF16;
  });
  expect_refused("fp32 with accumulate", [](BackwardArgs* a) {
    a->accumulate = 1;
    a->d_bias.dtype = ISOBIT_BF16;
  });
}

TEST(BackwardContract, Memory) {
  expect_refused("apart from hidden", [](BackwardArgs* a) {
    a->d_hidden.dtype = ISOBIT_BF16;
    a->d_hidden.data = a->forward.hidden.data;
  });
  expect_refused("apart from d_logp", [](BackwardArgs* a) { a->d_weight.data = a->d_logp.data; });
  expect_refused("apart from d_bias", [](BackwardArgs* a) { a->d_bias.data = a->d_weight.data; });
  expect_refused("apart from workspace", [](BackwardArgs* a) { a->d_bias.data = a->forward.workspace; });
  expect_refused("aligned to 256", [](BackwardArgs* a) {
    a->forward.workspace = static_cast<char*>(a->forward.workspace) + 16;
    a->forward.workspace_bytes -= 16;
  });
  expect_refused(
      "workspace_bytes", [](BackwardArgs* a) { a->forward.workspace_bytes = 64; }, ISOBIT_WORKSPACE_TOO_SMALL);
}

TEST(BackwardContract, MinimumWorkspaceIsExact) {
  Call call;
  size_t minimum = 0;
  ASSERT_EQ(isobit_linear_logp_backward_workspace(&call.args, &minimum, nullptr), ISOBIT_OK);
  call.args.forward.workspace_bytes = minimum - 1;
  EXPECT_EQ(isobit_linear_logp_backward(&call.args, nullptr), ISOBIT_WORKSPACE_TOO_SMALL);
  call.args.forward.workspace_bytes = minimum;
  EXPECT_EQ(isobit_linear_logp_backward(&call.args, nullptr), ISOBIT_OK) << isobit_last_error();
}

TEST(BackwardContract, RecommendedWorkspaceIsBounded) {
  Call call;
  BackwardArgs args = call.args;
  for (isobit_tensor* tensor : {&args.forward.hidden, &args.d_hidden}) {
    tensor->shape[0] = 16384;
    tensor->shape[1] = tensor->stride[0] = 5120;
    tensor->data = nullptr;
  }
  for (isobit_tensor* tensor : {&args.forward.weight, &args.d_weight}) {
    tensor->shape[0] = 262144;
    tensor->shape[1] = tensor->stride[0] = 5120;
    tensor->data = nullptr;
  }
  args.forward.bias.shape[0] = args.d_bias.shape[0] = 262144;
  for (isobit_tensor* tensor :
       {&args.forward.target, &args.forward.temperature, &args.d_logp, &args.d_lse, &args.d_entropy}) {
    tensor->shape[0] = 16384;
  }
  args.forward.threads = 64;
  size_t minimum = 0;
  size_t recommended = 0;
  ASSERT_EQ(isobit_linear_logp_backward_workspace(&args, &minimum, &recommended), ISOBIT_OK) << isobit_last_error();
  EXPECT_LE(minimum, size_t{32} << 20);
  EXPECT_LE(recommended, size_t{1} << 30);
}

TEST(BackwardContract, Saved) {
  Call call;
  size_t bytes = 0;
  ASSERT_EQ(isobit_linear_logp_saved_bytes(&call.args, &bytes), ISOBIT_OK);
  EXPECT_EQ(isobit_linear_logp_saved_bytes(&call.args, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_linear_logp_save(&call.args, nullptr), ISOBIT_INVALID_ARGUMENT) << "nothing to save to";
  Guarded saved(bytes + 16);
  call.args.saved = static_cast<char*>(saved.data()) + 4;
  EXPECT_EQ(isobit_linear_logp_save(&call.args, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_TRUE(saved.poisoned());
  call.args.saved = saved.data();
  EXPECT_EQ(isobit_linear_logp_save(&call.args, nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_TRUE(call.gradients->poisoned());
  std::vector<float> lse(3);
  call.args.forward.lse = vector(lse.data(), ISOBIT_FP32, 3);
  EXPECT_EQ(isobit_linear_logp_backward(&call.args, nullptr), ISOBIT_INVALID_ARGUMENT) << "lse from what was saved";
}

TEST(BackwardContract, Shards) {
  Call call;
  Guarded saved = save(call.problem);
  Guarded part(4096);
  BackwardArgs args = call.args;
  args.saved = saved.data();
  args.d_hidden = {};
  const auto run = [&](void* to) { return isobit_linear_logp_backward_shard(&args, to, nullptr); };
  EXPECT_EQ(run(part.data()), ISOBIT_INVALID_ARGUMENT) << "V is needed";
  args.forward.vocab_size = 20;
  EXPECT_EQ(run(part.data()), ISOBIT_OK) << isobit_last_error();
  // L = 2: a border at 3 cuts a segment, which only a part minds.
  args.forward.weight.shape[0] = args.forward.bias.shape[0] = args.d_weight.shape[0] = args.d_bias.shape[0] = 3;
  size_t bytes = 0;
  EXPECT_EQ(isobit_linear_logp_part_bytes(&args, &bytes), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(run(part.data()), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(run(nullptr), ISOBIT_OK) << isobit_last_error();
  args.saved = nullptr;
  EXPECT_EQ(run(nullptr), ISOBIT_INVALID_ARGUMENT) << "a shard alone cannot know the rows";
  args.saved = saved.data();
  args.d_hidden = call.args.d_hidden;
  EXPECT_EQ(run(nullptr), ISOBIT_INVALID_ARGUMENT) << "d_hidden is in the part";
}

TEST(BackwardContract, Merge) {
  Call call;
  std::vector<float> sums(3 * 8 * 4, 0.0f);
  BackwardArgs args = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
  args.d_hidden = call.args.d_hidden;
  const auto merge = [&](std::vector<isobit_linear_logp_state> parts) {
    return isobit_linear_logp_backward_merge(&args, parts.data(), static_cast<int32_t>(parts.size()), nullptr);
  };
  EXPECT_EQ(merge({{0, 20, sums.data()}}), ISOBIT_INVALID_ARGUMENT) << "V is needed";
  args.forward.vocab_size = 20;
  EXPECT_EQ(merge({{0, 18, sums.data()}}), ISOBIT_INVALID_ARGUMENT) << "a gap";
  EXPECT_EQ(merge({{0, 3, sums.data()}, {3, 17, sums.data()}}), ISOBIT_INVALID_ARGUMENT) << "a border in a segment";
  EXPECT_EQ(merge({{0, 20, call.gradients->hidden.data()}}), ISOBIT_INVALID_ARGUMENT) << "an overlap";
  EXPECT_EQ(merge({{0, 20, nullptr}}), ISOBIT_INVALID_ARGUMENT);
  EXPECT_TRUE(call.gradients->poisoned());
  EXPECT_EQ(merge({{4, 16, sums.data()}, {0, 4, sums.data()}}), ISOBIT_OK) << isobit_last_error();
}

TEST(BackwardContract, Supported) {
  Call call;
  char why[256];
  EXPECT_EQ(isobit_linear_logp_backward_supported(&call.args, why, sizeof why), ISOBIT_OK);
  EXPECT_STREQ(why, "");
  call.args.d_lse.shape[0] = 2;
  EXPECT_EQ(isobit_linear_logp_backward_supported(&call.args, why, sizeof why), ISOBIT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(why).find("d_lse"), std::string::npos);
}

}  // namespace
}  // namespace isobit::linear_logp::test
