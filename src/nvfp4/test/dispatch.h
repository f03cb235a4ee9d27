// Which calls the mma.sync and WGMMA kernels take, and how they are launched, with mocked devices: the tests that every
// operator with such kernels has.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "core/build_config.h"
#include "core/kernel_table.h"
#include "core/test/launch_recorder.h"
#include "nvfp4/test/calls.h"

namespace isobit::test {

template <class Problem>
class DispatchTest : public testing::Test {
 protected:
  using Args = typename Problem::Args;
  using Shape = typename Problem::ShapeType;
  using Change = std::function<void(Args&)>;

  // A shape of 130 rows and K = 64, six tiles of 128 x 128.
  explicit DispatchTest(const Shape& shape) : shape_(shape) {}

  void SetUp() override {
    if (!kBuiltWithCuda) GTEST_SKIP() << "this build has no CUDA kernels to dispatch to";
  }
  isobit_status run(const Shape& shape, const char* kernel, void* stream = nullptr, size_t workspace_bytes = 0,
                    const Change& change = {}) {
    Problem problem(shape);
    Args args = problem.args(problem.arena.bytes.data(), {ISOBIT_CUDA, 1});
    args.kernel = kernel;
    args.workspace = reinterpret_cast<void*>(4096);
    args.workspace_bytes = workspace_bytes;
    if (change) change(args);
    return Problem::kCalls.run(&args, stream);
  }

  void mma_sync_launches_once_without_workspace() {
    int stream = 0;
    for (const int capability : {80, 86, 89, 90, 100, 103, 110, 120, 121, 129}) {
      recorder_.capabilities[1] = capability;
      recorder_.launches.clear();
      ASSERT_EQ(run(shape_, "sm80", &stream), ISOBIT_OK) << isobit_last_error();
      ASSERT_EQ(recorder_.launches.size(), 1u);
      EXPECT_EQ(recorder_.launches[0].device, 1);
      EXPECT_EQ(recorder_.launches[0].stream, &stream);
      EXPECT_EQ(recorder_.launches[0].shape.grid.x, 6u);
    }
  }

  void wgmma_unpacks_and_multiplies() {
    int stream = 0;
    const auto rows = static_cast<size_t>(shape_.rows);
    EXPECT_EQ(run(shape_, nullptr, &stream), ISOBIT_WORKSPACE_TOO_SMALL);
    EXPECT_TRUE(recorder_.launches.empty());
    ASSERT_EQ(run(shape_, nullptr, &stream, rows * 64 * 2), ISOBIT_OK) << isobit_last_error();
    ASSERT_EQ(recorder_.launches.size(), 2u);
    EXPECT_FALSE(recorder_.launches[0].shape.programmatic);
    EXPECT_TRUE(recorder_.launches[1].shape.programmatic);
    EXPECT_EQ(recorder_.launches[1].stream, &stream);
    // Half the workspace, two pieces; no more rows at a time than fit.
    recorder_.launches.clear();
    ASSERT_EQ(run(shape_, nullptr, &stream, rows / 2 * 64 * 2), ISOBIT_OK) << isobit_last_error();
    EXPECT_EQ(recorder_.launches.size(), 4u);
  }

  void wgmma_names_its_limits() {
    const auto refused = [&](auto change, const char* message) {
      Shape shape = shape_;
      shape.rows = 1;
      change(shape);
      EXPECT_EQ(run(shape, "sm90"), ISOBIT_UNSUPPORTED);
      EXPECT_NE(std::string(isobit_last_error()).find(message), std::string::npos) << isobit_last_error();
    };
    refused([](Shape& s) { s.k = 80; }, "needs K a multiple of 64, got 80");
    refused([](Shape& s) { s.weight_layout = ISOBIT_NVFP4_LINEAR; }, "needs weight scales in the 128x4 layout");
    refused([](Shape& s) { s.padding = 8; }, "at multiples of 16 bytes");
    EXPECT_TRUE(recorder_.launches.empty());
  }

  // The stride of a tensor map is below 2^40 bytes, and these step over pairs of weight rows.
  void wgmma_names_the_copy_engines_stride() {
    for (const int64_t rows : {1, 130}) {
      for (const int64_t stride : {(int64_t{1} << 39) - 16, int64_t{1} << 39}) {
        recorder_.launches.clear();
        Shape shape = shape_;
        shape.rows = rows;
        const isobit_status status = run(shape, "sm90", nullptr, size_t{1} << 20, [&](Args& args) {
          args.weight.codes.data = reinterpret_cast<void*>(uintptr_t{1} << 60);  // away from what is written
          args.weight.codes.stride[0] = stride;
        });
        if (stride < int64_t{1} << 39) {
          EXPECT_EQ(status, ISOBIT_OK) << isobit_last_error();
          continue;
        }
        EXPECT_EQ(status, ISOBIT_UNSUPPORTED);
        EXPECT_NE(std::string(isobit_last_error()).find("less than 2^39 bytes apart, got 549755813888"),
                  std::string::npos)
            << isobit_last_error();
        EXPECT_TRUE(recorder_.launches.empty());
      }
    }
  }

  void old_devices_are_refused() {
    recorder_.capabilities[1] = 75;
    EXPECT_EQ(run({}, nullptr), ISOBIT_UNSUPPORTED);
    EXPECT_NE(std::string(isobit_last_error()).find("sm80: needs compute capability 8.0"), std::string::npos);
    EXPECT_TRUE(recorder_.launches.empty());
  }

  Shape shape_;
  LaunchRecorder recorder_;
  ScopedRuntime scope_{&recorder_};
};

// Only SM90's tensor-core rule has been measured: other architectures must not claim its contract.
inline void expect_contracts_to_name_the_rule(const KernelInfo* (*kernel_at)(int)) {
  for (int i = 0; kernel_at(i) != nullptr; ++i) {
    const KernelInfo& info = *kernel_at(i);
    const bool measured = info.device == ISOBIT_CPU || (info.min_capability == 90 && info.max_capability == 90);
    EXPECT_EQ(std::strstr(info.contract, "unmeasured") == nullptr, measured) << info.name;
  }
}

}  // namespace isobit::test
