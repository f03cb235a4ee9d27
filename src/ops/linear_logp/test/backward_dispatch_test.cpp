// Which row of the backward table serves a call on which device; the devices are mocked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/test/launch_recorder.h"
#include "ops/linear_logp/backward_contract.h"
#include "ops/linear_logp/dispatch.h"
#include "ops/linear_logp/test/backward_case.h"

namespace isobit::linear_logp::test {
namespace {

// Host memory that is said to be a device's: nothing runs.
class MockedPlace final : public Place {
 public:
  int device_type() const override { return ISOBIT_CUDA; }
  void* put(const void* host, size_t bytes) override {
    void* const memory = room(bytes);
    std::memcpy(memory, host, bytes);
    return memory;
  }
  void* room(size_t bytes) override {
    memory_.emplace_back(bytes);
    return memory_.back().data();
  }
  void fetch(void* host, const void* place, size_t bytes) override { std::memcpy(host, place, bytes); }

 private:
  std::vector<Guarded> memory_;
};

class LinearLogpBackwardDispatch : public testing::Test {
 protected:
  isobit_status run(int capability, const BackwardCase& c, const char* kernel = nullptr) {
    mock_.capabilities = {capability};
    MockedPlace place;
    BackwardCall call(c, &place, {.kernel = kernel});
    mock_.launches.clear();
    return isobit_linear_logp_backward(&call.args, nullptr);
  }
  // The copy engine's kernels are the only ones with dynamic shared memory.
  bool used_copy_engine() const {
    return std::any_of(mock_.launches.begin(), mock_.launches.end(),
                       [](const auto& launch) { return launch.shape.dynamic_shared_bytes > 0; });
  }

  isobit::test::LaunchRecorder mock_;
  ScopedRuntime scope_{&mock_};
};

TEST_F(LinearLogpBackwardDispatch, EveryArchitecture) {
  const BackwardCase c = random_case({70, 64, 300}, 1);
  for (const int capability : {80, 86, 89, 90, 100, 103, 110, 120, 121, 129}) {
    ASSERT_EQ(run(capability, c), ISOBIT_OK) << isobit_last_error();
    EXPECT_FALSE(mock_.launches.empty());
    EXPECT_EQ(used_copy_engine(), capability == 90) << capability;
    ASSERT_EQ(run(capability, c, "sm80"), ISOBIT_OK) << isobit_last_error();
    EXPECT_FALSE(used_copy_engine());
  }
}

TEST_F(LinearLogpBackwardDispatch, WhatTheCopyEngineCannotTakeGoesToMmaSync) {
  BackwardCase misaligned = random_case({20, 64, 300}, 2);
  misaligned.misaligned = true;
  for (const BackwardCase& c : {random_case({20, 33, 300}, 3), misaligned}) {
    ASSERT_EQ(run(90, c), ISOBIT_OK) << isobit_last_error();
    EXPECT_FALSE(mock_.launches.empty());
    EXPECT_FALSE(used_copy_engine());
  }
}

TEST_F(LinearLogpBackwardDispatch, RefusalsSayWhyAndLaunchNothing) {
  const auto expect_refusal = [&](int capability, int64_t width, const char* kernel, size_t workspace,
                                  isobit_status status, const char* text) {
    MockedPlace place;
    mock_.capabilities = {90};
    BackwardCall call(random_case({20, width, 300}, 4), &place, {.kernel = "sm80"});
    mock_.capabilities = {capability};
    mock_.launches.clear();
    call.args.forward.kernel = kernel;
    if (workspace > 0) call.args.forward.workspace_bytes = workspace;
    EXPECT_EQ(isobit_linear_logp_backward(&call.args, nullptr), status);
    EXPECT_NE(std::string(isobit_last_error()).find(text), std::string::npos) << isobit_last_error();
    EXPECT_TRUE(mock_.launches.empty());
  };
  expect_refusal(90, 33, "sm90", 0, ISOBIT_UNSUPPORTED, "sm90: hidden");
  expect_refusal(80, 64, "sm90", 0, ISOBIT_UNSUPPORTED, "sm90: needs compute capability 9.0");
  expect_refusal(75, 64, nullptr, 0, ISOBIT_UNSUPPORTED, "sm80: needs compute capability 8.0");
  expect_refusal(80, 64, nullptr, 1000, ISOBIT_WORKSPACE_TOO_SMALL, "workspace_bytes");
}

// The stride of a tensor map is below 2^40 bytes. What SM90's kernels refuse, forward or backward, goes to mma.sync.
TEST_F(LinearLogpBackwardDispatch, StridesBeyondTheCopyEngine) {
  MockedPlace place;
  mock_.capabilities = {90};
  BackwardCall call(random_case({20, 64, 300}, 5), &place, {.kernel = "sm90"});
  call.args.forward.weight.data = reinterpret_cast<void*>(uintptr_t{1} << 60);  // away from what is written
  call.args.forward.weight.stride[0] = (int64_t{1} << 39) - 8;
  EXPECT_EQ(isobit_linear_logp_backward(&call.args, nullptr), ISOBIT_OK) << isobit_last_error();
  call.args.forward.weight.stride[0] = int64_t{1} << 39;
  mock_.launches.clear();
  EXPECT_EQ(isobit_linear_logp_backward(&call.args, nullptr), ISOBIT_UNSUPPORTED);
  EXPECT_NE(std::string(isobit_last_error()).find("weight: expected stride[0] below 2^39, got 549755813888"),
            std::string::npos)
      << isobit_last_error();
  EXPECT_TRUE(mock_.launches.empty());
  call.args.forward.kernel = nullptr;
  EXPECT_EQ(isobit_linear_logp_backward(&call.args, nullptr), ISOBIT_OK) << isobit_last_error();
  EXPECT_FALSE(used_copy_engine());
}

TEST_F(LinearLogpBackwardDispatch, NoRowsLaunchNothingThatAccumulates) {
  BackwardCase none = random_case({0, 33, 300}, 6);
  none.accumulate = true;
  ASSERT_EQ(run(80, none), ISOBIT_OK) << isobit_last_error();
  EXPECT_TRUE(mock_.launches.empty());
}

// Only SM90's rule has been measured.
TEST(LinearLogpBackwardTable, IdsSayWhoseRuleIsMeasured) {
  int unmeasured = 0;
  for (int i = 0; backward_kernel_at(i) != nullptr; ++i) {
    const KernelInfo& info = *backward_kernel_at(i);
    const bool measured = std::string(info.contract) == kBackwardContract;
    EXPECT_EQ(measured, info.device == ISOBIT_CPU || (info.min_capability == 90 && info.max_capability == 90));
    if (measured) continue;
    ++unmeasured;
    EXPECT_STREQ(info.contract, "linear_logp_backward/sm80-unmeasured/0");
  }
  EXPECT_EQ(unmeasured, 1);
}

}  // namespace
}  // namespace isobit::linear_logp::test
