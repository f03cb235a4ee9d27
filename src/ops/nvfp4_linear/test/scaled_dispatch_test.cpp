// Which calls the block-scaled kernels take, and how they are launched, with mocked devices.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/build_config.h"
#include "core/test/launch_recorder.h"
#include "device/scaled_tile.h"
#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

using device::ScaledTile;
using Args = isobit_nvfp4_linear_args;

class Nvfp4LinearScaled : public testing::Test {
 protected:
  static constexpr Shape kShape = {.rows = 130, .columns = 288, .k = 64};

  isobit_status run(const std::function<void(Args&)>& change, const Shape& shape = kShape) {
    Problem problem(shape);
    Args args = problem.args(problem.arena.bytes.data(), {ISOBIT_CUDA, 0});
    change(args);
    return isobit_nvfp4_linear(&args, nullptr);
  }
  void refused(const std::function<void(Args&)>& change, const std::string& message, const Shape& shape = kShape) {
    EXPECT_EQ(run(change, shape), ISOBIT_UNSUPPORTED);
    EXPECT_NE(std::string(isobit_last_error()).find("sm100: " + message), std::string::npos) << isobit_last_error();
    EXPECT_NE(std::string(isobit_last_error()).find("sm100-pair: " + message), std::string::npos);
    EXPECT_TRUE(recorder_.launches.empty());
  }
  void SetUp() override {
    if (!kBuiltForSm100) GTEST_SKIP() << "this build has no images for SM100, SM103 or SM110";
    recorder_.capabilities = {110};
  }
  isobit::test::LaunchRecorder recorder_;
  ScopedRuntime scope_{&recorder_};
};

TEST_F(Nvfp4LinearScaled, OnePersistentLaunch) {
  for (const int capability : {100, 103, 110}) {
    recorder_.capabilities = {capability};
    for (const char* const kernel : {static_cast<const char*>(nullptr), "sm100", "sm100-pair"}) {
      recorder_.launches.clear();
      ASSERT_EQ(run([&](Args& a) { a.kernel = kernel; }), ISOBIT_OK) << isobit_last_error();
      ASSERT_EQ(recorder_.launches.size(), 1u);
      const LaunchShape& shape = recorder_.launches[0].shape;
      EXPECT_EQ(shape.grid.x, 4u);  // 2 x 2 tiles, or 2 pairs of blocks
      EXPECT_EQ(shape.block.x, static_cast<uint32_t>(ScaledTile::kThreads));
      EXPECT_EQ(shape.cluster.x, kernel != nullptr && std::string(kernel) == "sm100-pair" ? 2u : 1u);
      EXPECT_EQ(shape.dynamic_shared_bytes, ScaledTile::kSharedBytes);
    }
  }
}

TEST_F(Nvfp4LinearScaled, NoMoreBlocksThanMultiprocessors) {
  Shape large = kShape;
  large.rows = 128 * 150;
  ASSERT_EQ(run([](Args&) {}, large), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(recorder_.launches.at(0).shape.grid.x, 132u);
}

TEST_F(Nvfp4LinearScaled, OperandsThatTheMatrixUnitCannotRead) {
  Shape shape = kShape;
  shape.k = 80;
  refused([](Args&) {}, "x.codes: expected K a multiple of 64, got 80", shape);
  shape = kShape;
  shape.x_layout = ISOBIT_NVFP4_LINEAR;
  refused([](Args&) {}, "x.layout: expected 128x4, got linear", shape);
  shape = kShape;
  shape.weight_layout = ISOBIT_NVFP4_8X4;
  refused([](Args&) {}, "weight.layout: expected 128x4, got 8x4", shape);
  shape = kShape;
  shape.padding = 8;
  refused([](Args&) {}, "x.codes: expected stride[0] a multiple of 16, got 40", shape);
  const auto move = [](isobit_tensor& tensor) { tensor.data = static_cast<char*>(tensor.data) + 8; };
  refused([&](Args& a) { move(a.x.codes); }, "x.codes: expected an address aligned to 16 bytes");
  refused([&](Args& a) { move(a.weight.codes); }, "weight.codes: expected an address aligned to 16 bytes");
  refused([&](Args& a) { move(a.x.scales); }, "x.scales: expected an address aligned to 16 bytes");
  refused([&](Args& a) { move(a.weight.scales); }, "weight.scales: expected an address aligned to 16 bytes");
}

TEST_F(Nvfp4LinearScaled, OtherDevicesOfTheRange) {
  recorder_.capabilities = {101};
  EXPECT_EQ(run([](Args& a) { a.kernel = "sm100"; }), ISOBIT_UNSUPPORTED);
  EXPECT_NE(std::string(isobit_last_error()).find("built for compute capability 10.0, 10.3 and 11.0, the device has"),
            std::string::npos)
      << isobit_last_error();
}

// A call that these kernels refuse does not get other bits silently.
TEST_F(Nvfp4LinearScaled, OtherKernelsByNameOnly) {
  Shape shape = kShape;
  shape.k = 80;
  EXPECT_EQ(run([](Args&) {}, shape), ISOBIT_UNSUPPORTED);
  EXPECT_NE(std::string(isobit_last_error()).find("sm80: on this device by name only"), std::string::npos);
  EXPECT_EQ(run([](Args& a) { a.kernel = "sm80"; }, shape), ISOBIT_OK) << isobit_last_error();
  recorder_.capabilities = {120};
  EXPECT_EQ(run([](Args&) {}, shape), ISOBIT_OK) << isobit_last_error();
}

}  // namespace
}  // namespace isobit::nvfp4_linear::test
