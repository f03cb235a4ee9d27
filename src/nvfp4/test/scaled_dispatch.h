// Which calls the block-scaled kernels take, and how they are launched, with mocked devices: the tests that every
// operator with such kernels has.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/build_config.h"
#include "core/test/launch_recorder.h"
#include "nvfp4/scaled_tile.h"
#include "nvfp4/test/calls.h"

namespace isobit::test {

template <class Problem>
class ScaledDispatchTest : public testing::Test {
 protected:
  using Args = typename Problem::Args;
  using Shape = typename Problem::ShapeType;
  using Change = std::function<void(Args&)>;

  // A shape of 2 x 2 tiles.
  explicit ScaledDispatchTest(const Shape& shape) : shape_(shape) {}

  void SetUp() override {
    if (!kBuiltForSm100) GTEST_SKIP() << "this build has no images for SM100, SM103 or SM110";
    recorder_.capabilities = {110};
  }
  isobit_status run(const Change& change, const Shape& shape) {
    Problem problem(shape);
    Args args = problem.args(problem.arena.bytes.data(), {ISOBIT_CUDA, 0});
    change(args);
    return Problem::kCalls.run(&args, nullptr);
  }
  void refused(const Change& change, const std::string& message, const Shape& shape) {
    EXPECT_EQ(run(change, shape), ISOBIT_UNSUPPORTED);
    EXPECT_NE(std::string(isobit_last_error()).find("sm100: " + message), std::string::npos) << isobit_last_error();
    EXPECT_NE(std::string(isobit_last_error()).find("sm100-pair: " + message), std::string::npos);
    EXPECT_TRUE(recorder_.launches.empty());
  }
  static void move(isobit_tensor& tensor, int bytes) { tensor.data = static_cast<char*>(tensor.data) + bytes; }

  static void stretch(isobit_tensor& tensor) {
    tensor.data = reinterpret_cast<void*>(uintptr_t{1} << 60);  // away from what is written
    tensor.stride[0] = int64_t{1} << 40;                        // bytes: the first that no tensor map takes
  }

  void launches_once_persistently() {
    for (const int capability : {100, 103, 110}) {
      recorder_.capabilities = {capability};
      for (const char* const kernel : {static_cast<const char*>(nullptr), "sm100", "sm100-pair"}) {
        recorder_.launches.clear();
        ASSERT_EQ(run([&](Args& a) { a.kernel = kernel; }, shape_), ISOBIT_OK) << isobit_last_error();
        ASSERT_EQ(recorder_.launches.size(), 1u);
        const LaunchShape& shape = recorder_.launches[0].shape;
        EXPECT_EQ(shape.grid.x, 4u);  // tiles, or 2 pairs of blocks
        EXPECT_EQ(shape.block.x, static_cast<uint32_t>(device::ScaledTile::kThreads));
        // SM110's default is the pair, that of the others the single block.
        const bool pair = kernel != nullptr ? std::string(kernel) == "sm100-pair" : capability == 110;
        EXPECT_EQ(shape.cluster.x, pair ? 2u : 1u) << capability << " " << (kernel != nullptr ? kernel : "default");
        EXPECT_EQ(shape.dynamic_shared_bytes, device::ScaledTile::kSharedBytes);
      }
    }
    Shape large = shape_;
    large.rows = 128 * 150;
    for (const int capability : {100, 110}) {
      recorder_.capabilities = {capability};
      recorder_.launches.clear();
      ASSERT_EQ(run([](Args&) {}, large), ISOBIT_OK) << isobit_last_error();
      EXPECT_EQ(recorder_.launches.at(0).shape.grid.x, 132u) << "one block a multiprocessor";
    }
  }

  void refuses_operands_that_the_matrix_unit_cannot_read() {
    const auto none = [](Args&) {};
    Shape shape = shape_;
    shape.k = 80;
    refused(none, "x.codes: expected K a multiple of 64, got 80", shape);
    shape = shape_;
    shape.x_layout = ISOBIT_NVFP4_LINEAR;
    refused(none, "x.layout: expected 128x4, got linear", shape);
    shape = shape_;
    shape.weight_layout = ISOBIT_NVFP4_8X4;
    refused(none, "weight.layout: expected 128x4, got 8x4", shape);
    shape = shape_;
    shape.padding = 8;
    refused(none, "x.codes: expected stride[0] a multiple of 16, got 40", shape);
    refused([](Args& a) { stretch(a.weight.codes); }, "weight.codes: expected stride[0] below 2^40, got 1099511627776",
            shape_);
    refused([](Args& a) { move(a.x.codes, 8); }, "x.codes: expected an address aligned to 16 bytes", shape_);
    refused([](Args& a) { move(a.weight.codes, 8); }, "weight.codes: expected an address aligned to 16 bytes", shape_);
    refused([](Args& a) { move(a.x.scales, 8); }, "x.scales: expected an address aligned to 16 bytes", shape_);
    refused([](Args& a) { move(a.weight.scales, 8); }, "weight.scales: expected an address aligned to 16 bytes",
            shape_);
  }

  void refuses_other_devices_of_the_range() {
    recorder_.capabilities = {101};
    EXPECT_EQ(run([](Args& a) { a.kernel = "sm100"; }, shape_), ISOBIT_UNSUPPORTED);
    const std::string found = isobit_last_error();
    EXPECT_NE(found.find("built for compute capability 10.0, 10.3 and 11.0, the device has"), std::string::npos)
        << found;
  }

  // A call that these kernels refuse does not get other bits silently.
  void runs_other_kernels_by_name_only() {
    Shape shape = shape_;
    shape.k = 80;
    EXPECT_EQ(run([](Args&) {}, shape), ISOBIT_UNSUPPORTED);
    EXPECT_NE(std::string(isobit_last_error()).find("sm80: on this device by name only"), std::string::npos);
    EXPECT_EQ(run([](Args& a) { a.kernel = "sm80"; }, shape), ISOBIT_OK) << isobit_last_error();
    recorder_.capabilities = {120};
    EXPECT_EQ(run([](Args&) {}, shape), ISOBIT_OK) << isobit_last_error();
  }

  Shape shape_;
  LaunchRecorder recorder_;
  ScopedRuntime scope_{&recorder_};
};

}  // namespace isobit::test
