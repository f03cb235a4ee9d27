// Every rule of the arguments, one over and one under; a refused call writes nothing.
#include <gtest/gtest.h>

#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

using Args = Problem::Args;

class Nvfp4LinearContract : public isobit::test::ContractTest<Problem> {
 protected:
  Nvfp4LinearContract() : ContractTest({.rows = 3, .columns = 33, .k = 48}) {}
};

TEST_F(Nvfp4LinearContract, Accepted) {
  Args args = with_workspace();
  EXPECT_EQ(isobit_nvfp4_linear(&args, nullptr), ISOBIT_OK) << isobit_last_error();
}

TEST_F(Nvfp4LinearContract, StructAndWorkspace) { refuses_unusable_structs_and_workspaces(); }

TEST_F(Nvfp4LinearContract, Operands) {
  refused([](Args& a) { a.threads = -1; }, "threads: expected 0 <= threads <= 1024, got threads = -1");
  refused([](Args& a) { a.x.codes.shape[1] = 23; }, "K a positive multiple of 16");
  refused([](Args& a) { a.x.codes.shape[1] = 0; }, "K a positive multiple of 16");
  refused([](Args& a) { a.x.codes.dtype = ISOBIT_BF16; }, "x.codes: expected uint8");
  refused([](Args& a) { a.x.codes.stride[1] = 2; }, "x.codes: expected elements of a row");
  refused([](Args& a) { a.weight.codes.shape[1] = 32, a.weight.scales.shape[1] = 4; },
          "weight.codes: expected shape[1] = K/2 of x = 24");
  refused([](Args& a) { a.weight.codes.device_type = ISOBIT_CUDA; }, "weight.codes: expected device cpu:0");
  refused([](Args& a) { a.x.layout = ISOBIT_NVFP4_LINEAR; }, "x.scales: expected shape[0] = padded rows = 3, got 128");
}

// Scales in a slice of something wider used to be read as if they were dense.
TEST_F(Nvfp4LinearContract, ScalesAreDenseAndWhole) {
  refused([](Args& a) { a.x.scales.stride[0] = 8; }, "x.scales: expected dense scales");
  refused([](Args& a) { a.weight.scales.shape[0] = 33; },
          "weight.scales: expected shape[0] = padded rows = 128, got 33");
}

TEST_F(Nvfp4LinearContract, GlobalScales) {
  refused([](Args& a) { a.x_scale.value = 0; }, "x_scale.value: expected a positive finite number");
  refused([](Args& a) { a.weight_scale.value = -2; }, "weight_scale.value: expected a positive finite number");
  static float scale = 1;
  refused([](Args& a) { a.weight_scale.tensor = {&scale, ISOBIT_BF16, ISOBIT_CPU, 0, 0, {}, {}}; },
          "weight_scale.tensor: expected fp32, got bf16");
}

TEST_F(Nvfp4LinearContract, Output) {
  refused([](Args& a) { a.out.dtype = ISOBIT_FP16; }, "out: expected bf16 or fp32");
  refused([](Args& a) { a.out.shape[1] = 32; }, "out: expected shape[1] = N = 33");
  refused([](Args& a) { a.out.shape[0] = 4; }, "out: expected shape[0] = that of x = 3");
  refused([](Args& a) { a.out.stride[0] = 32; }, "out: expected an output whose elements do not overlap");
  refused([](Args& a) { a.out.data = a.x.codes.data; }, "out: expected memory that does not overlap x.codes");
  refused([](Args& a) { a.out.data = a.weight.scales.data; },
          "out: expected memory that does not overlap weight.scales");
}

}  // namespace
}  // namespace isobit::nvfp4_linear::test
