// Every rule about outputs, workspace and overlaps.
#include "ops/linear_logp/test/contract_call.h"

namespace isobit::linear_logp::test {
namespace {

TEST(Contract, Outputs) {
  expect_refused("logp: expected rank 2, got rank 1", [](Args* a) { a->logp.rank = 1; });
  expect_refused("logp: expected fp32, got bf16", [](Args* a) { a->logp.dtype = ISOBIT_BF16; });
  expect_refused("logp: expected shape[1] = K = 2, got 1", [](Args* a) { a->logp.shape[1] = 1; });
  expect_refused("logp: expected data, got a null pointer", [](Args* a) { a->logp.data = nullptr; });
  expect_refused("logp: expected an output whose elements do not overlap", [](Args* a) { a->logp.stride[0] = 1; });
  expect_refused("lse: expected shape[0] = N = 3, got 4", [](Args* a) { a->lse.shape[0] = 4; });
  expect_refused("entropy: expected rank 1, got rank 2", [](Args* a) { a->entropy.rank = 2; });
  expect_refused("rank: expected int32, got fp32", [](Args* a) { a->rank.dtype = ISOBIT_FP32; });
  expect_refused("target_logit: expected fp32, got int32", [](Args* a) { a->target_logit.dtype = ISOBIT_INT32; });
  expect_refused("top_logp: expected top_id with it, got top_id absent", [](Args* a) { a->top_id = {}; });
  expect_taken("top ids alone", [](Args* a) { a->top_logp = {}; });
  expect_refused("top_logp: expected shape[1] = T = 4, got 3", [](Args* a) { a->top_logp.shape[1] = 3; });
  expect_refused("logp: expected at least one output, got none", [](Args* a) {
    a->logp = a->lse = a->entropy = a->rank = a->target_logit = a->top_id = a->top_logp = {};
  });
  const auto with_top = [](int64_t t) {
    return [t](Args* a) {
      a->weight.shape[0] = a->bias.shape[0] = 100;
      for (isobit_tensor* list : {&a->top_id, &a->top_logp}) list->shape[1] = list->stride[0] = t;
    };
  };
  EXPECT_EQ(query(with_top(64)), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(query(with_top(65)), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(isobit_last_error(), "top_id: expected 1 <= T <= 64, got T = 65");
  expect_refused("top_id: expected 1 <= T <= 20, got T = 0", [](Args* a) { a->top_id.shape[1] = 0; });
  const auto top_of = [](int64_t t) {
    return [t](Args* a) {
      a->vocab_size = 3;
      for (isobit_tensor* list : {&a->top_id, &a->top_logp}) list->shape[1] = t;
    };
  };
  expect_taken("T = V", top_of(3));
  expect_refused("top_id: expected 1 <= T <= 3, got T = 4", top_of(4));
}

TEST(Contract, Overlaps) {
  expect_refused("logp: expected memory apart from hidden", [](Args* a) { a->logp.data = a->hidden.data; });
  expect_refused("lse: expected memory apart from weight", [](Args* a) { a->lse.data = a->weight.data; });
  expect_refused("entropy: expected memory apart from bias", [](Args* a) { a->entropy.data = a->bias.data; });
  expect_refused("rank: expected memory apart from target", [](Args* a) { a->rank.data = a->target.data; });
  expect_refused("lse: expected memory apart from temperature", [](Args* a) { a->lse.data = a->temperature.data; });
  expect_refused("logp: expected memory apart from target_logit", [](Args* a) { a->logp.data = a->target_logit.data; });
  expect_refused("lse: expected memory apart from entropy", [](Args* a) {
    a->lse.data = static_cast<float*>(a->entropy.data) + 2;  // its last element
  });
  expect_taken("next to each other", [](Args* a) {
    a->lse.data = a->top_logp.data;
    a->entropy.data = static_cast<float*>(a->top_logp.data) + 3;
    a->top_logp = {};
  });
  expect_refused("top_id: expected memory apart from workspace", [](Args* a) {
    a->workspace = a->top_id.data;
    a->workspace_bytes = 48;
  });
  Guarded shared(512);
  expect_refused("workspace: expected memory apart from weight", [&shared](Args* a) {
    a->weight.data = a->workspace = shared.data();
    a->workspace_bytes = shared.bytes();
  });
}

TEST(Contract, WorkspaceSizes) {
  Call call;
  size_t minimum = 0;
  size_t recommended = 0;
  ASSERT_EQ(isobit_linear_logp_workspace(&call.args, &minimum, &recommended), ISOBIT_OK);
  EXPECT_GT(minimum, 0u);
  EXPECT_LE(minimum, recommended);
  expect_taken("minimum", [minimum](Args* a) { a->workspace_bytes = minimum; });
  const auto one_less = [minimum](Args* a) { a->workspace_bytes = minimum - 1; };
  expect_refused("workspace_bytes: expected", one_less, ISOBIT_WORKSPACE_TOO_SMALL);
  expect_refused("workspace: expected a pointer, got null", [](Args* a) { a->workspace = nullptr; });
  expect_refused("workspace: expected memory aligned to 256 bytes",
                 [](Args* a) { a->workspace = static_cast<char*>(a->workspace) + 128; });
  Args without_pointers = call.args;
  for (isobit_tensor* t : {&without_pointers.hidden, &without_pointers.weight, &without_pointers.target,
                           &without_pointers.bias, &without_pointers.logp}) {
    t->data = nullptr;
  }
  size_t again = 0;
  EXPECT_EQ(isobit_linear_logp_workspace(&without_pointers, &again, nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(again, minimum);
}

TEST(Contract, SupportedAnswersWhatTheRunWould) {
  char why[256];
  Call call;
  EXPECT_EQ(isobit_linear_logp_supported(&call.args, why, sizeof why), ISOBIT_OK);
  EXPECT_STREQ(why, "");
  EXPECT_TRUE(call.outputs->poisoned());
  call.args.workspace_bytes = 0;
  EXPECT_EQ(isobit_linear_logp_supported(&call.args, why, sizeof why), ISOBIT_WORKSPACE_TOO_SMALL);
  EXPECT_EQ(std::string(why).rfind("workspace_bytes: expected", 0), 0u) << why;
  call.args.kernel = "gpu";
  EXPECT_EQ(isobit_linear_logp_supported(&call.args, why, 8), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(why, "kernel:");
}

TEST(Contract, TableOfKernels) {
  bool found = false;
  for (int32_t i = 0; i < isobit_kernel_count(); ++i) {
    isobit_kernel_info info = {};
    info.struct_size = sizeof info;
    ASSERT_EQ(isobit_get_kernel_info(i, &info), ISOBIT_OK);
    if (std::string(info.op) != "linear_logp" || std::string(info.kernel) != "cpu") continue;
    found = true;
    EXPECT_STREQ(info.contract, isobit_linear_logp_contract());
    EXPECT_EQ(info.built, 1);
    EXPECT_EQ(info.usable, 1);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace isobit::linear_logp::test
