// Every rule of the arguments, one over and one under; a refused call writes nothing.
#include <gtest/gtest.h>

#include "ops/nvfp4_geglu/test/problem.h"

namespace isobit::nvfp4_geglu::test {
namespace {

using Args = Problem::Args;

class Nvfp4GegluContract : public isobit::test::ContractTest<Problem> {
 protected:
  Nvfp4GegluContract() : ContractTest({.rows = 3, .width = 32, .k = 48}) {}
};

TEST_F(Nvfp4GegluContract, Accepted) {
  Args args = with_workspace();
  EXPECT_EQ(isobit_nvfp4_geglu(&args, nullptr), ISOBIT_OK) << isobit_last_error();
}

TEST_F(Nvfp4GegluContract, StructAndWorkspace) { refuses_unusable_structs_and_workspaces(); }

TEST_F(Nvfp4GegluContract, Options) {
  refused([](Args& a) { a.threads = 1025; }, "threads: expected 0 <= threads <= 1024, got threads = 1025");
  refused([](Args& a) { a.gelu = 0; }, "gelu: expected ISOBIT_GELU_TANH or ISOBIT_GELU_ERF, got 0");
  refused([](Args& a) { a.gelu = 3; }, "gelu: expected");
  refused([](Args& a) { a.reserved = 1; }, "reserved: expected 0");
}

TEST_F(Nvfp4GegluContract, Operands) {
  refused([](Args& a) { a.x.codes.shape[1] = 23; }, "K a positive multiple of 16");
  refused([](Args& a) { a.weight.codes.shape[1] = 32, a.weight.scales.shape[1] = 4; },
          "weight.codes: expected shape[1] = K/2 of x");
  refused([](Args& a) { a.weight.codes.shape[0] = 48; },
          "weight.codes: expected 2I rows, I a positive multiple of 16, got 48 rows");
  refused([](Args& a) { a.weight.codes.shape[0] = 0, a.weight.scales.shape[0] = 0; }, "weight.codes: expected 2I rows");
  refused([](Args& a) { a.x.layout = ISOBIT_NVFP4_8X4; }, "x.scales: expected shape[0] = padded rows = 8, got 128");
  refused([](Args& a) { a.x.scales.stride[0] = 8; }, "x.scales: expected dense scales");
}

TEST_F(Nvfp4GegluContract, GlobalScales) {
  refused([](Args& a) { a.x_scale.value = 0; }, "x_scale.value: expected a positive finite number");
  refused([](Args& a) { a.gate_scale.value = -1; }, "gate_scale.value: expected");
  refused([](Args& a) { a.up_scale.value = 0; }, "up_scale.value: expected");
  refused([](Args& a) { a.out_scale.value = 0; }, "out_scale.value: expected");
  static float scale = 1;
  refused([](Args& a) { a.up_scale.tensor = {&scale, ISOBIT_BF16, ISOBIT_CPU, 0, 0, {}, {}}; },
          "up_scale.tensor: expected fp32, got bf16");
}

TEST_F(Nvfp4GegluContract, Output) {
  refused([](Args& a) { a.out.codes.shape[1] = 24; }, "out.codes: expected shape[1] = K/2 = 16, got 24");
  refused([](Args& a) { a.out.codes.shape[0] = 2; }, "out.codes: expected shape[0] = that of x = 3");
  refused([](Args& a) { a.out.codes.stride[0] = 15; }, "out.codes: expected an output whose elements do not overlap");
  refused([](Args& a) { a.out.scales.shape[0] = 3; }, "out.scales: expected shape[0] = padded rows = 128, got 3");
  refused([](Args& a) { a.out.codes.data = a.x.codes.data; },
          "out.codes: expected memory that does not overlap x.codes");
  refused([](Args& a) { a.out.scales.data = a.weight.scales.data; },
          "out.scales: expected memory that does not overlap weight.scales");
  refused([](Args& a) { a.out.scales.data = a.out.codes.data; },
          "out.scales: expected memory that does not overlap out.codes");
}

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
