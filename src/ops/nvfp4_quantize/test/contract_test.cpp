// Every rule of the arguments, one over and one under; a refused call writes nothing.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "ops/nvfp4_quantize/test/problem.h"

namespace isobit::nvfp4_quantize::test {
namespace {

using Args = isobit_nvfp4_quantize_args;
using Change = std::function<void(Args&)>;

class Nvfp4QuantizeContract : public testing::Test {
 protected:
  void refused(const Change& change, const std::string& message) {
    problem_.reset();
    Args args = problem_.args();
    change(args);
    const std::vector<std::byte> before = problem_.arena;
    char why[512];
    EXPECT_EQ(isobit_nvfp4_quantize_supported(&args, why, sizeof why), ISOBIT_INVALID_ARGUMENT);
    EXPECT_NE(std::string(why).find(message), std::string::npos) << why;
    EXPECT_EQ(isobit_nvfp4_quantize(&args, nullptr), ISOBIT_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(isobit_last_error()), why);
    EXPECT_EQ(problem_.arena, before);
  }
  void accepted(const Change& change) {
    problem_.reset();
    Args args = problem_.args();
    change(args);
    EXPECT_EQ(isobit_nvfp4_quantize(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  }
  Problem problem_{{.rows = 130, .k = 48, .dtype = ISOBIT_FP32}, Values::kNormal};
};

TEST_F(Nvfp4QuantizeContract, Struct) {
  EXPECT_EQ(isobit_nvfp4_quantize(nullptr, nullptr), ISOBIT_INVALID_ARGUMENT);
  refused([](Args& a) { a.struct_size = 8; }, "struct_size");
  refused([](Args& a) { a.kernel = "sm90"; }, "kernel: expected the name of a row");
  refused([](Args& a) { a.threads = 1025; }, "threads: expected 0 <= threads <= 1024, got threads = 1025");
  refused([](Args& a) { a.out.reserved = 1; }, "out.reserved: expected 0");
  refused([](Args& a) { a.global_scale.reserved = 1; }, "global_scale.reserved: expected 0");
  accepted([](Args& a) { a.kernel = "cpu"; });
}

TEST_F(Nvfp4QuantizeContract, Input) {
  refused([](Args& a) { a.x.dtype = ISOBIT_INT32; }, "x: expected bf16 or fp16 or fp32");
  refused([](Args& a) { a.x.rank = 1; }, "x: expected rank 2");
  refused([](Args& a) { a.x.stride[1] = 2; }, "x: expected elements of a row next to each other");
  refused([](Args& a) { a.x.shape[1] = 40; }, "K a positive multiple of 16");
  refused([](Args& a) { a.x.shape[1] = 0; }, "K a positive multiple of 16");
  refused([](Args& a) { a.x.data = nullptr; }, "x: expected data");
  refused([](Args& a) { a.x.shape[0] = int64_t{1} << 31, a.x.stride[0] = 0; }, "fewer than 2^31 rows");
  accepted([](Args& a) { a.x.stride[0] = 0; });
  accepted([](Args& a) { a.x.stride[0] = 16; });
}

TEST_F(Nvfp4QuantizeContract, Codes) {
  refused([](Args& a) { a.out.codes.dtype = ISOBIT_NONE; }, "out.codes: expected uint8");
  refused([](Args& a) { a.out.codes.shape[1] = 23; }, "out.codes: expected shape[1] = K/2 = 24, got 23");
  refused([](Args& a) { a.out.codes.shape[0] = 129; }, "out.codes: expected shape[0] = that of x = 130");
  refused([](Args& a) { a.out.codes.stride[1] = 2; }, "out.codes: expected elements of a row");
  refused([](Args& a) { a.out.codes.stride[0] = 23; }, "out.codes: expected an output whose elements do not overlap");
  refused([](Args& a) { a.out.codes.rank = 3; }, "out.codes: expected rank 2 like x");
}

// 130 rows of 3 blocks are held as 256 x 4 bytes.
TEST_F(Nvfp4QuantizeContract, ScalesHaveTheirPadding) {
  refused([](Args& a) { a.out.scales.shape[0] = 130; }, "out.scales: expected shape[0] = padded rows = 256, got 130");
  refused([](Args& a) { a.out.scales.shape[1] = 3; }, "out.scales: expected shape[1] = padded blocks = 4, got 3");
  refused([](Args& a) { a.out.scales.stride[0] = 5; }, "dense scales");
  refused([](Args& a) { a.out.scales.dtype = ISOBIT_FP32; }, "out.scales: expected uint8");
  refused([](Args& a) { a.out.layout = 3; }, "out.layout: expected ISOBIT_NVFP4_LINEAR");
  refused([](Args& a) { a.out.layout = ISOBIT_NVFP4_8X4; }, "padded rows = 136, got 256");
  const auto flat = [](int64_t bytes) {
    return [bytes](Args& a) { a.out.scales.rank = 1, a.out.scales.shape[0] = bytes, a.out.scales.stride[0] = 1; };
  };
  accepted(flat(1024));
  refused(flat(1023), "out.scales: expected shape[0] = bytes of the padded scales = 1024");
  refused([&](Args& a) { flat(1024)(a), a.out.scales.stride[0] = 2; }, "out.scales: expected elements of a row");
}

// A bf16 scale read as fp32 gives scales of zero.
TEST_F(Nvfp4QuantizeContract, GlobalScaleHasItsDtypeAndRange) {
  static float scale[2] = {1, 1};
  const auto with_tensor = [](const Change& change) {
    return [change](Args& a) {
      a.global_scale.tensor = {scale, ISOBIT_FP32, ISOBIT_CPU, 0, 1, {1}, {1}};
      change(a);
    };
  };
  accepted(with_tensor([](Args&) {}));
  accepted(with_tensor([](Args& a) { a.global_scale.value = 0; }));
  refused(with_tensor([](Args& a) { a.global_scale.tensor.dtype = ISOBIT_BF16; }),
          "global_scale.tensor: expected fp32");
  refused(with_tensor([](Args& a) { a.global_scale.tensor.shape[0] = 2; }), "global_scale.tensor: expected shape[0]");
  refused(with_tensor([](Args& a) { a.global_scale.tensor.device_type = ISOBIT_CUDA; }),
          "global_scale.tensor: expected device");
  for (const float bad :
       {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    refused([bad](Args& a) { a.global_scale.value = bad; }, "global_scale.value: expected a positive finite number");
  }
  accepted([](Args& a) { a.global_scale.value = std::numeric_limits<float>::denorm_min(); });
}

TEST_F(Nvfp4QuantizeContract, OutputsDoNotOverlap) {
  refused([](Args& a) { a.out.codes.data = a.x.data; }, "out.codes: expected memory that does not overlap x");
  refused([](Args& a) { a.out.scales.data = static_cast<char*>(a.x.data) + 100; }, "does not overlap x");
  refused([](Args& a) { a.out.scales.data = a.out.codes.data; }, "does not overlap out.codes");
  refused(
      [](Args& a) {
        const auto at = reinterpret_cast<uintptr_t>(a.out.codes.data) / 4 * 4;
        a.global_scale.tensor = {reinterpret_cast<void*>(at), ISOBIT_FP32, ISOBIT_CPU, 0, 0, {}, {}};
      },
      "out.codes: expected memory that does not overlap global_scale");
}

TEST(Nvfp4ScalesShape, IsThatOfTheLayouts) {
  int64_t rows = 0, blocks = 0;
  EXPECT_EQ(isobit_nvfp4_scales_shape(ISOBIT_NVFP4_128X4, 129, 80, &rows, &blocks), ISOBIT_OK);
  EXPECT_EQ(rows, 256);
  EXPECT_EQ(blocks, 8);
  EXPECT_EQ(isobit_nvfp4_scales_shape(ISOBIT_NVFP4_8X4, 9, 80, &rows, nullptr), ISOBIT_OK);
  EXPECT_EQ(rows, 16);
  EXPECT_EQ(isobit_nvfp4_scales_shape(ISOBIT_NVFP4_LINEAR, 9, 80, nullptr, &blocks), ISOBIT_OK);
  EXPECT_EQ(blocks, 5);
  EXPECT_EQ(isobit_nvfp4_scales_shape(3, 9, 80, &rows, &blocks), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_nvfp4_scales_shape(ISOBIT_NVFP4_LINEAR, -1, 80, &rows, &blocks), ISOBIT_INVALID_ARGUMENT);
  EXPECT_EQ(isobit_nvfp4_scales_shape(ISOBIT_NVFP4_LINEAR, 1, 81, &rows, &blocks), ISOBIT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace isobit::nvfp4_quantize::test
