// Every rule of the arguments, one over and one under; a refused call writes nothing.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

using Args = isobit_nvfp4_linear_args;
using Change = std::function<void(Args&)>;

class Nvfp4LinearContract : public testing::Test {
 protected:
  void refused(const Change& change, const std::string& message, isobit_status status = ISOBIT_INVALID_ARGUMENT) {
    Args args = with_workspace();
    change(args);
    const std::vector<std::byte> before = problem_.arena.bytes;
    char why[512];
    EXPECT_EQ(isobit_nvfp4_linear_supported(&args, why, sizeof why), status);
    EXPECT_NE(std::string(why).find(message), std::string::npos) << why;
    EXPECT_EQ(isobit_nvfp4_linear(&args, nullptr), status);
    EXPECT_EQ(problem_.arena.bytes, before);
  }
  Args with_workspace() {
    Args args = problem_.args();
    args.workspace = memory_;
    args.workspace_bytes = sizeof memory_;
    return args;
  }
  Problem problem_{{.rows = 3, .columns = 33, .k = 48}};
  alignas(256) std::byte memory_[1 << 20];
};

TEST_F(Nvfp4LinearContract, Accepted) {
  Args args = with_workspace();
  EXPECT_EQ(isobit_nvfp4_linear(&args, nullptr), ISOBIT_OK) << isobit_last_error();
}

TEST_F(Nvfp4LinearContract, Struct) {
  EXPECT_EQ(isobit_nvfp4_linear(nullptr, nullptr), ISOBIT_INVALID_ARGUMENT);
  refused([](Args& a) { a.struct_size = 8; }, "struct_size");
  refused([](Args& a) { a.kernel = "sm75"; }, "kernel: expected the name of a row");
}

TEST_F(Nvfp4LinearContract, Operands) {
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

TEST_F(Nvfp4LinearContract, Workspace) {
  size_t minimum = 0, recommended = 0;
  Args args = problem_.args();
  ASSERT_EQ(isobit_nvfp4_linear_workspace(&args, &minimum, &recommended), ISOBIT_OK);
  EXPECT_LE(minimum, recommended);
  refused([&](Args& a) { a.workspace_bytes = minimum - 1; }, "workspace_bytes: expected", ISOBIT_WORKSPACE_TOO_SMALL);
  refused([](Args& a) { a.workspace = nullptr; }, "workspace: expected a pointer");
  refused([](Args& a) { a.workspace = static_cast<char*>(a.workspace) + 64; }, "aligned to 256 bytes");
}

}  // namespace
}  // namespace isobit::nvfp4_linear::test
