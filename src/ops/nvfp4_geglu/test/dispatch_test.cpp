// The table of kernels, with mocked devices.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/build_config.h"
#include "core/test/launch_recorder.h"
#include "ops/nvfp4_geglu/dispatch.h"
#include "ops/nvfp4_geglu/test/problem.h"

namespace isobit::nvfp4_geglu::test {
namespace {

class Nvfp4GegluDispatch : public testing::Test {
 protected:
  isobit_status run(const Shape& shape, const char* kernel, void* stream = nullptr, size_t workspace_bytes = 0) {
    Problem problem(shape);
    Problem::Args args = problem.args(problem.arena.bytes.data(), {ISOBIT_CUDA, 1});
    args.kernel = kernel;
    args.workspace = reinterpret_cast<void*>(4096);
    args.workspace_bytes = workspace_bytes;
    return Problem::kCalls.run(&args, stream);
  }
  void SetUp() override {
    if (!kBuiltWithCuda) GTEST_SKIP() << "this build has no CUDA kernels to dispatch to";
  }
  isobit::test::LaunchRecorder recorder_;
  ScopedRuntime scope_{&recorder_};
};

TEST_F(Nvfp4GegluDispatch, MmaSyncLaunchesOnceWithoutWorkspace) {
  int stream = 0;
  for (const int capability : {80, 86, 89, 90, 100, 103, 110, 120, 121}) {
    recorder_.capabilities[1] = capability;
    recorder_.launches.clear();
    ASSERT_EQ(run({.rows = 130, .width = 144, .k = 64}, "sm80", &stream), ISOBIT_OK) << isobit_last_error();
    ASSERT_EQ(recorder_.launches.size(), 1u);
    EXPECT_EQ(recorder_.launches[0].device, 1);
    EXPECT_EQ(recorder_.launches[0].stream, &stream);
    EXPECT_EQ(recorder_.launches[0].shape.grid.x, 6u);
  }
}

TEST_F(Nvfp4GegluDispatch, WgmmaUnpacksAndMultiplies) {
  int stream = 0;
  const Shape shape = {.rows = 130, .width = 144, .k = 64};
  EXPECT_EQ(run(shape, nullptr, &stream), ISOBIT_WORKSPACE_TOO_SMALL);
  EXPECT_TRUE(recorder_.launches.empty());
  ASSERT_EQ(run(shape, nullptr, &stream, 130 * 64 * 2), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(recorder_.launches.size(), 2u);
  EXPECT_FALSE(recorder_.launches[0].shape.programmatic);
  EXPECT_TRUE(recorder_.launches[1].shape.programmatic);
  EXPECT_EQ(recorder_.launches[1].stream, &stream);
  // Half the workspace, two pieces; no more rows at a time than fit.
  recorder_.launches.clear();
  ASSERT_EQ(run(shape, nullptr, &stream, 65 * 64 * 2), ISOBIT_OK) << isobit_last_error();
  EXPECT_EQ(recorder_.launches.size(), 4u);
}

TEST_F(Nvfp4GegluDispatch, WgmmaNamesItsLimits) {
  const auto refused = [&](const Shape& shape, const char* message) {
    EXPECT_EQ(run(shape, "sm90"), ISOBIT_UNSUPPORTED);
    EXPECT_NE(std::string(isobit_last_error()).find(message), std::string::npos) << isobit_last_error();
  };
  refused({.width = 144, .k = 80}, "needs K a multiple of 64, got 80");
  refused({.width = 144, .k = 64, .weight_layout = ISOBIT_NVFP4_LINEAR}, "needs weight scales in the 128x4 layout");
  refused({.width = 144, .k = 64, .padding = 8}, "at multiples of 16 bytes");
  EXPECT_TRUE(recorder_.launches.empty());
}

TEST_F(Nvfp4GegluDispatch, OldDevicesAreRefused) {
  recorder_.capabilities[1] = 75;
  EXPECT_EQ(run({}, nullptr), ISOBIT_UNSUPPORTED);
  EXPECT_NE(std::string(isobit_last_error()).find("sm80: needs compute capability 8.0"), std::string::npos);
  EXPECT_TRUE(recorder_.launches.empty());
}

// Only SM90's tensor-core rule has been measured: other architectures must not claim its contract.
TEST(Nvfp4GegluTable, ContractsNameTheRule) {
  for (int i = 0; kernel_at(i) != nullptr; ++i) {
    const KernelInfo& info = *kernel_at(i);
    const bool measured = info.device == ISOBIT_CPU || (info.min_capability == 90 && info.max_capability == 90);
    EXPECT_EQ(std::strstr(info.contract, "unmeasured") == nullptr, measured) << info.name;
  }
}

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
