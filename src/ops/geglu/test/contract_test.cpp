// Every rule of the contract: what is refused, with which words, and that a refused call touches nothing.
#include <gtest/gtest.h>

#include <string>

#include "ops/geglu/contract.h"
#include "ops/geglu/test/problem.h"

namespace isobit::geglu::test {
namespace {

using ForwardArgs = isobit_geglu_forward_args;
using BackwardArgs = isobit_geglu_backward_args;

class GegluContract : public testing::Test {
 protected:
  template <class Change>
  void refused(Change change, const std::string& words, isobit_status status = ISOBIT_INVALID_ARGUMENT) {
    problem_.reset();
    ForwardArgs args = problem_.forward(ISOBIT_GELU_TANH);
    change(args);
    EXPECT_EQ(isobit_geglu_forward(&args, nullptr), status);
    EXPECT_NE(std::string(isobit_last_error()).find(words), std::string::npos) << isobit_last_error();
    EXPECT_EQ(problem_.stray_write(false), "");
    for (const uint32_t bits : problem_.out()) EXPECT_EQ(bits, 0xA5A5u);
  }

  template <class Change>
  void backward_refused(Change change, const std::string& words) {
    problem_.reset();
    BackwardArgs args = problem_.backward(ISOBIT_GELU_TANH);
    change(args);
    EXPECT_EQ(isobit_geglu_backward(&args, nullptr), ISOBIT_INVALID_ARGUMENT);
    EXPECT_NE(std::string(isobit_last_error()).find(words), std::string::npos) << isobit_last_error();
    for (const uint32_t bits : problem_.d_up()) EXPECT_EQ(bits, 0xA5A5u);
  }

  Problem problem_{ISOBIT_BF16, {.rows = 4, .columns = 24, .padding = 8}, Values::kNormal};
};

TEST_F(GegluContract, AcceptsTheProblemItself) {
  ForwardArgs forward = problem_.forward(ISOBIT_GELU_TANH);
  EXPECT_EQ(isobit_geglu_forward(&forward, nullptr), ISOBIT_OK) << isobit_last_error();
  BackwardArgs backward = problem_.backward(ISOBIT_GELU_ERF);
  EXPECT_EQ(isobit_geglu_backward(&backward, nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_STREQ(isobit_geglu_contract(), kContract);
}

TEST_F(GegluContract, Structure) {
  EXPECT_EQ(isobit_geglu_forward(nullptr, nullptr), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_geglu_backward(nullptr, nullptr), ISOBIT_INVALID_ARGUMENT);
  refused([](ForwardArgs& a) { a.struct_size = 8; }, "struct_size: expected");
  backward_refused([](BackwardArgs& a) { a.struct_size = 0; }, "struct_size: expected");
  refused([](ForwardArgs& a) { a.threads = -1; }, "threads: expected 0 <= threads <= 1024, got threads = -1");
  backward_refused([](BackwardArgs& a) { a.threads = 1025; }, "threads: expected");
  backward_refused([](BackwardArgs& a) { a.reserved = 1; }, "reserved: expected 0, got 1");
  backward_refused([](BackwardArgs& a) { a.in_place = 2; }, "in_place: expected 0 or 1, got 2");
}

TEST_F(GegluContract, OptionsHaveNoDefault) {
  refused([](ForwardArgs& a) { a.gelu = 0; }, "gelu: expected ISOBIT_GELU_TANH or ISOBIT_GELU_ERF, got 0");
  refused([](ForwardArgs& a) { a.round_gelu = 3; }, "round_gelu: expected 0 or 1, got 3");
  refused([](ForwardArgs& a) { a.kernel = "triton"; }, "kernel: expected the name of a row");
}

TEST_F(GegluContract, Tensors) {
  refused([](ForwardArgs& a) { a.gate.data = nullptr; }, "gate: expected data, got a null pointer");
  refused([](ForwardArgs& a) { a.out.data = nullptr; }, "out: expected data, got a null pointer");
  refused([](ForwardArgs& a) { a.gate.dtype = ISOBIT_INT32; }, "gate: expected bf16 or fp16 or fp32, got int32");
  refused([](ForwardArgs& a) { a.up.dtype = ISOBIT_FP16; }, "up: expected bf16 like gate, got fp16");
  refused([](ForwardArgs& a) { a.out.rank = 1; }, "out: expected rank 2 like gate, got rank 1");
  refused([](ForwardArgs& a) { a.gate.rank = 5; }, "gate: expected rank 1");
  refused([](ForwardArgs& a) { a.up.shape[1] = 23; }, "up: expected shape[1] = I of gate = 24, got 23");
  refused([](ForwardArgs& a) { a.out.shape[0] = 3; }, "out: expected shape[0] = that of gate = 4, got 3");
  refused([](ForwardArgs& a) { a.gate.shape[0] = -4; }, "gate: expected no negative size");
  refused([](ForwardArgs& a) { a.up.stride[0] = -32; }, "up: expected no negative stride");
  refused([](ForwardArgs& a) { a.out.device_type = ISOBIT_CUDA; }, "out: expected device cpu:0");
  refused([](ForwardArgs& a) { a.up.data = static_cast<char*>(a.up.data) + 1; }, "up: expected data aligned");
}

TEST_F(GegluContract, Strides) {
  refused([](ForwardArgs& a) { a.gate.stride[1] = 2; }, "gate: expected last stride 1, or 2 in both tensors");
  refused([](ForwardArgs& a) { a.up.stride[1] = 3; }, "up: expected last stride 1, or 2 in both tensors");
  refused([](ForwardArgs& a) { a.out.stride[1] = 2; }, "out: expected elements of a row next to each other");
  // The row stride is too short for the row, so rows would overlap.
  refused([](ForwardArgs& a) { a.out.stride[0] = 23; }, "out: expected an output whose elements do not overlap");
  // Stride 2 in both, but not each other's neighbours.
  refused(
      [](ForwardArgs& a) {
        for (isobit_tensor* t : {&a.gate, &a.up, &a.out}) t->shape[1] = 8;
        a.gate.stride[1] = a.up.stride[1] = 2;
      },
      "up: expected the element next to gate");
}

TEST_F(GegluContract, LeadingDimensionsAreRows) {
  const auto as_cube = [](isobit_tensor& t, int64_t outer) {
    t.rank = 3;
    t.shape[2] = t.shape[1];
    t.stride[2] = t.stride[1];
    t.shape[0] = t.shape[1] = 2;
    t.stride[1] = t.stride[0];
    t.stride[0] = outer;
  };
  ForwardArgs args = problem_.forward(ISOBIT_GELU_TANH);
  for (isobit_tensor* t : {&args.gate, &args.up, &args.out}) as_cube(*t, 2 * 32);
  Params params;
  ASSERT_TRUE(check(&args, &params).ok()) << isobit_last_error();
  EXPECT_EQ(params.rows, 4);
  EXPECT_EQ(params.gate.row_stride, 32);
  args.up.stride[0] = 96;
  EXPECT_FALSE(check(&args, &params).ok());
  EXPECT_NE(std::string(isobit_last_error()).find("up: expected leading dimensions at one distance"),
            std::string::npos);
}

TEST_F(GegluContract, OverlapIsRefused) {
  refused([](ForwardArgs& a) { a.out = a.gate; }, "out: expected memory that does not overlap gate");
  refused([](ForwardArgs& a) { a.out.data = static_cast<uint16_t*>(a.up.data) + 1; }, "does not overlap up");
  backward_refused([](BackwardArgs& a) { a.d_gate = a.gate; }, "d_gate: expected memory that does not overlap gate");
  backward_refused([](BackwardArgs& a) { a.d_up = a.d_gate; }, "d_up: expected memory that does not overlap d_gate");
  backward_refused([](BackwardArgs& a) { a.d_up = a.d_out; }, "d_up: expected memory that does not overlap d_out");
  // in_place allows a tensor over itself and nothing else.
  backward_refused(
      [](BackwardArgs& a) {
        a.in_place = 1;
        a.d_gate = a.up;
      },
      "d_gate: expected memory that does not overlap up");
  backward_refused(
      [](BackwardArgs& a) {
        a.in_place = 1;
        a.d_gate = a.gate;
        a.d_gate.data = static_cast<uint16_t*>(a.gate.data) + 8;
      },
      "d_gate: expected memory that does not overlap gate");
}

TEST_F(GegluContract, ColumnsOfOneBufferDoNotOverlap) {
  // out in the padding of the rows that hold gate: same row stride, columns that do not meet.
  Problem wide(ISOBIT_BF16, {.rows = 4, .columns = 24, .padding = 24}, Values::kNormal);
  ForwardArgs args = wide.forward(ISOBIT_GELU_TANH);
  args.out.data = static_cast<uint16_t*>(args.gate.data) + 24;
  EXPECT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  args.out.data = static_cast<uint16_t*>(args.gate.data) + 23;
  EXPECT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_INVALID_ARGUMENT);
}

// At a row distance of 2 I - 1 the first element of a row of d_gate would be the last one of d_up's row before.
TEST_F(GegluContract, AlternatingGradientsWhoseRowsMeetAreRefused) {
  for (const bool swapped : {false, true}) {
    Problem pair(ISOBIT_BF16,
                 {.rows = 4, .columns = 24, .gradients = Arrangement::kInterleaved, .swapped = swapped, .padding = 8},
                 Values::kNormal);
    BackwardArgs args = pair.backward(ISOBIT_GELU_TANH);
    args.d_gate.stride[0] = args.d_up.stride[0] = 48;
    EXPECT_EQ(isobit_geglu_backward(&args, nullptr), ISOBIT_OK) << isobit_last_error();
    args.d_gate.stride[0] = args.d_up.stride[0] = 47;
    EXPECT_EQ(isobit_geglu_backward(&args, nullptr), ISOBIT_INVALID_ARGUMENT);
    EXPECT_NE(std::string(isobit_last_error()).find("d_up: expected memory that does not overlap d_gate"),
              std::string::npos)
        << isobit_last_error();
    for (isobit_tensor* t : {&args.gate, &args.up, &args.d_out, &args.d_gate, &args.d_up}) t->shape[0] = 1;
    EXPECT_EQ(isobit_geglu_backward(&args, nullptr), ISOBIT_OK) << isobit_last_error();  // one row meets nobody
  }
}

TEST_F(GegluContract, RowsThatNoNumberHolds) {
  refused(
      [](ForwardArgs& a) {
        for (isobit_tensor* t : {&a.gate, &a.up, &a.out}) {
          *t = {t->data, ISOBIT_BF16, ISOBIT_CPU, 0, 4, {}, {}};
          for (int i = 0; i < 3; ++i) t->shape[i] = int64_t{1} << 62;  // their product is 0 in 128 bits
          t->shape[3] = 1;
        }
      },
      "gate: expected fewer than 2^62 rows");
}

TEST_F(GegluContract, EmptyTensorsAreLegal) {
  for (const int dimension : {0, 1}) {
    ForwardArgs args = problem_.forward(ISOBIT_GELU_TANH);
    for (isobit_tensor* t : {&args.gate, &args.up, &args.out}) {
      t->shape[dimension] = 0;
      t->data = nullptr;
    }
    EXPECT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  }
}

TEST_F(GegluContract, InputsMayBeExpanded) {
  ForwardArgs args = problem_.forward(ISOBIT_GELU_TANH);
  args.up.stride[0] = 0;
  EXPECT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_OK) << isobit_last_error();
}

TEST_F(GegluContract, SupportedSaysWhy) {
  ForwardArgs args = problem_.forward(ISOBIT_GELU_TANH);
  char why[128] = "x";
  EXPECT_EQ(isobit_geglu_forward_supported(&args, why, sizeof why), ISOBIT_OK);
  EXPECT_STREQ(why, "");
  args.gelu = 9;
  EXPECT_EQ(isobit_geglu_forward_supported(&args, why, sizeof why), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(why).rfind("gelu: expected", 0), 0u) << why;
  EXPECT_EQ(isobit_geglu_forward_supported(&args, nullptr, 0), ISOBIT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace isobit::geglu::test
