// Every rule about inputs: one value that breaks it, with the message, and its neighbour that does not.
#include <cmath>
#include <limits>
#include <memory>

#include "ops/linear_logp/test/contract_call.h"

namespace isobit::linear_logp::test {
namespace {

TEST(Contract, TheCallThatTheOthersChangeIsLegal) {
  expect_taken("unchanged", [](Args*) {});
}

TEST(Contract, NullPointers) {
  size_t bytes = 0;
  int64_t row = 0;
  EXPECT_EQ(isobit_linear_logp(nullptr, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(isobit_last_error(), "args: expected a pointer, got null");
  EXPECT_EQ(isobit_linear_logp_workspace(nullptr, &bytes, &bytes), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_linear_logp_supported(nullptr, nullptr, 0), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_linear_logp_validate(nullptr, &row, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_linear_logp_state_bytes(nullptr, &bytes), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_linear_logp_shard(nullptr, nullptr, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_linear_logp_merge(nullptr, nullptr, 1, nullptr), ISOBIT_INVALID_ARGUMENT);
  Call call;
  EXPECT_EQ(isobit_linear_logp_validate(&call.args, nullptr, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_linear_logp_state_bytes(&call.args, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_linear_logp_workspace(&call.args, nullptr, nullptr), ISOBIT_OK);
}

// Of a struct of another size nothing is read but the size; AddressSanitizer sees it.
TEST(Contract, AStructOfAnotherSizeIsNotRead) {
  const auto size = std::make_unique<uint32_t>(uint32_t{sizeof(uint32_t)});
  const auto* const args = reinterpret_cast<const Args*>(size.get());
  EXPECT_EQ(isobit_linear_logp(args, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_linear_logp_supported(args, nullptr, 0), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_linear_logp_workspace(args, nullptr, nullptr), ISOBIT_INVALID_ARGUMENT);
}

TEST(Contract, HeaderFields) {
  expect_refused("struct_size: expected sizeof", [](Args* a) { --a->struct_size; });
  expect_refused("struct_size: expected sizeof", [](Args* a) { ++a->struct_size; });
  expect_refused("reserved: expected 0, got 1", [](Args* a) { a->reserved = 1; });
  expect_refused("threads: expected 0 <= threads <= 1024, got threads = -1", [](Args* a) { a->threads = -1; });
  expect_refused("threads: expected 0 <= threads <= 1024, got threads = 1025", [](Args* a) { a->threads = 1025; });
  expect_taken("threads 1024", [](Args* a) { a->threads = 1024; });
  expect_taken("threads 0", [](Args* a) { a->threads = 0; });
  expect_refused("use_ignore_index: expected 0 or 1, got 2", [](Args* a) { a->use_ignore_index = 2; });
  expect_refused("use_ignore_index: expected 0 or 1, got -1", [](Args* a) { a->use_ignore_index = -1; });
  expect_taken("no ignore_index", [](Args* a) { a->use_ignore_index = 0; });
}

TEST(Contract, KernelNames) {
  expect_taken("the CPU's", [](Args* a) { a->kernel = "cpu"; });
  expect_refused("kernel: expected the name of a row of `isobit list`, got \"gpu\"",
                 [](Args* a) { a->kernel = "gpu"; });
}

TEST(Contract, HiddenAndWeight) {
  expect_refused("hidden: expected bf16 or fp16, got fp32", [](Args* a) { a->hidden.dtype = ISOBIT_FP32; });
  expect_refused("hidden: expected bf16 or fp16, got none", [](Args* a) { a->hidden.dtype = ISOBIT_NONE; });
  expect_refused("weight: expected the dtype of hidden, got fp16, hidden is bf16",
                 [](Args* a) { a->weight.dtype = ISOBIT_FP16; });
  expect_refused("hidden: expected rank 2, got rank 1", [](Args* a) { a->hidden.rank = 1; });
  expect_refused("weight: expected rank 2, got rank 3", [](Args* a) { a->weight.rank = 3; });
  expect_refused("hidden: expected data, got a null pointer", [](Args* a) { a->hidden.data = nullptr; });
  expect_refused("weight: expected data, got a null pointer", [](Args* a) { a->weight.data = nullptr; });
  expect_refused("weight: expected shape[1] = H = 8, got 7", [](Args* a) { a->weight.shape[1] = 7; });
  expect_refused("hidden: expected no negative size", [](Args* a) { a->hidden.shape[0] = -1; });
  expect_refused("hidden: expected no negative stride", [](Args* a) { a->hidden.stride[0] = -8; });
  expect_refused("hidden: expected elements of a row next to each other", [](Args* a) { a->hidden.stride[1] = 2; });
  expect_refused("weight: expected elements of a row next to each other", [](Args* a) { a->weight.stride[1] = 0; });
  expect_refused("weight: expected stride[0] >= H", [](Args* a) { a->weight.stride[0] = 7; });
  expect_taken("one hidden state for all rows", [](Args* a) { a->hidden.stride[0] = 0; });
  expect_taken("overlapping hidden states", [](Args* a) { a->hidden.stride[0] = 1; });
  expect_refused("weight: expected device cpu:0", [](Args* a) { a->weight.device_type = ISOBIT_CUDA; });
  expect_refused("hidden: expected device_type ISOBIT_CPU or ISOBIT_CUDA, got 5",
                 [](Args* a) { a->hidden.device_type = 5; });
  expect_refused("hidden: expected data aligned to its element",
                 [](Args* a) { a->hidden.data = static_cast<char*>(a->hidden.data) + 1; });
}

TEST(Contract, LimitsOfSizes) {
  const auto with_width = [](int64_t h) {
    return [h](Args* a) { a->hidden.shape[1] = a->weight.shape[1] = a->hidden.stride[0] = a->weight.stride[0] = h; };
  };
  EXPECT_EQ(query(with_width(kMaxWidth)), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(query(with_width(kMaxWidth + 1)), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(isobit_last_error(), "hidden: expected 1 <= H <= 16777216, got H = 16777217");
  expect_refused("hidden: expected 1 <= H <= 16777216, got H = 0", with_width(0));

  const auto with_vocab = [](int64_t v) { return [v](Args* a) { a->weight.shape[0] = a->bias.shape[0] = v; }; };
  EXPECT_EQ(query(with_vocab(kMaxVocab)), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(query(with_vocab(kMaxVocab + 1)), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(isobit_last_error(), "weight: expected 0 <= Vw <= 2147483647, got Vw = 2147483648");
  expect_refused("vocab_size: expected 1 <= V <= 2147483647, got V = 0", with_vocab(0));

  const auto with_rows = [](int64_t n) {
    return [n](Args* a) {
      a->hidden.stride[0] = 8;
      for (isobit_tensor* t : {&a->hidden, &a->target, &a->temperature, &a->logp, &a->lse, &a->entropy, &a->rank,
                               &a->target_logit, &a->top_id, &a->top_logp}) {
        t->shape[0] = n;
      }
    };
  };
  EXPECT_EQ(query(with_rows(kMaxRows)), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(query(with_rows(kMaxRows + 1)), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(isobit_last_error(), "hidden: expected 0 <= N <= 2147483647, got N = 2147483648");
  expect_taken("no rows", with_rows(0));
  expect_refused("hidden: expected an extent below 2^62 bytes",
                 [](Args* a) { a->hidden.stride[0] = int64_t{1} << 61; });
  expect_refused("hidden: expected an extent below 2^62 bytes", [](Args* a) {  // more than 2^127 bytes
    for (int i : {0, 1}) a->hidden.shape[i] = a->hidden.stride[i] = INT64_MAX;
  });
}

TEST(Contract, VocabularyAndPadding) {
  expect_taken("padded weight", [](Args* a) { a->vocab_size = 19; });
  expect_taken("V = Vw", [](Args* a) { a->vocab_size = 20; });
  expect_refused(
      "weight: expected a row for every id (Vw >= V) in a call over the whole vocabulary, got Vw = 20, V = 21",
      [](Args* a) { a->vocab_size = 21; });
  expect_refused("vocab_size: expected 0 or more, got -1", [](Args* a) { a->vocab_size = -1; });
  expect_refused("first_id: expected 0 in a call over the whole vocabulary, got 1", [](Args* a) { a->first_id = 1; });
  expect_refused("first_id: expected 0 <= first_id", [](Args* a) { a->first_id = -1; });
}

TEST(Contract, Bias) {
  expect_taken("absent", [](Args* a) { a->bias = {}; });
  expect_taken("one value for all ids", [](Args* a) { a->bias.stride[0] = 0; });
  expect_refused("bias: expected bf16 or fp16 or fp32, got int32", [](Args* a) { a->bias.dtype = ISOBIT_INT32; });
  expect_refused("bias: expected shape[0] = Vw = 20, got 19", [](Args* a) { a->bias.shape[0] = 19; });
  expect_refused("bias: expected rank 1, got rank 2", [](Args* a) { a->bias.rank = 2; });
  expect_refused("bias: expected data, got a null pointer", [](Args* a) { a->bias.data = nullptr; });
}

TEST(Contract, Targets) {
  expect_refused("target: expected int32 or int64, got none", [](Args* a) { a->target = {}; });
  expect_refused("target: expected int32 or int64, got fp32", [](Args* a) { a->target.dtype = ISOBIT_FP32; });
  expect_refused("target: expected shape[0] = N = 3, got 2", [](Args* a) { a->target.shape[0] = 2; });
  expect_refused("target: expected 1 <= K <= 64, got K = 0", [](Args* a) { a->target.shape[1] = 0; });
  const auto with_targets = [](int64_t k) {
    return [k](Args* a) {
      for (isobit_tensor* t : {&a->target, &a->logp, &a->rank, &a->target_logit}) t->shape[1] = t->stride[0] = k;
    };
  };
  EXPECT_EQ(query(with_targets(64)), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(query(with_targets(65)), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(isobit_last_error(), "target: expected 1 <= K <= 64, got K = 65");
  expect_refused("target: expected rank 1 or rank 2, got rank 3", [](Args* a) { a->target.rank = 3; });
  expect_taken("one id for all rows", [](Args* a) { a->target.stride[0] = a->target.stride[1] = 0; });
}

TEST(Contract, TemperatureAndSoftcap) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto scalar = [](float t) {
    return [t](Args* a) {
      a->temperature = {};
      a->temperature_value = t;
    };
  };
  expect_taken("smallest temperature", scalar(std::numeric_limits<float>::denorm_min()));
  expect_taken("largest temperature", scalar(std::numeric_limits<float>::max()));
  expect_refused("temperature_value: expected a finite value above 0, got 0", scalar(0.0f));
  expect_refused("temperature_value: expected a finite value above 0, got -1", scalar(-1.0f));
  expect_refused("temperature_value: expected a finite value above 0, got inf", scalar(infinity));
  expect_refused("temperature_value: expected a finite value above 0, got nan", scalar(std::nanf("")));
  expect_taken("value unused with one per row", [](Args* a) { a->temperature_value = 0.0f; });
  expect_refused("temperature: expected fp32, got bf16", [](Args* a) { a->temperature.dtype = ISOBIT_BF16; });
  expect_refused("temperature: expected shape[0] = N = 3, got 1", [](Args* a) { a->temperature.shape[0] = 1; });
  expect_taken("[N, 1]", [](Args* a) { a->temperature = matrix(a->temperature.data, ISOBIT_FP32, 3, 1); });
  expect_refused("temperature: expected shape[1] = one per row = 1, got 2",
                 [](Args* a) { a->temperature = matrix(a->temperature.data, ISOBIT_FP32, 3, 2, 0); });
  expect_taken("one for all rows", [](Args* a) { a->temperature.stride[0] = 0; });
  expect_taken("softcap", [](Args* a) { a->softcap = 30.0f; });
  expect_refused("softcap: expected 0 (none) or a finite value above 0, got -1", [](Args* a) { a->softcap = -1.0f; });
  expect_refused("softcap: expected 0 (none)", [infinity](Args* a) { a->softcap = infinity; });
  expect_refused("softcap: expected 0 (none)", [](Args* a) { a->softcap = std::nanf(""); });
}

}  // namespace
}  // namespace isobit::linear_logp::test
