// The table of kernels with mocked devices, in a build that has the CUDA kernels.
#include <gtest/gtest.h>

#include <string>

#include "core/test/launch_recorder.h"
#include "ops/geglu/dispatch.h"
#include "ops/geglu/test/problem.h"

namespace isobit::geglu::test {
namespace {

class GegluDispatch : public testing::Test {
 protected:
  isobit_status run(int device, int64_t columns, const char* kernel = nullptr, void* stream = nullptr) {
    Problem problem(ISOBIT_BF16, {.rows = 4, .columns = columns}, Values::kNormal);
    isobit_geglu_forward_args args = problem.forward(problem.arena.data(), {ISOBIT_CUDA, device}, ISOBIT_GELU_TANH);
    args.kernel = kernel;
    return isobit_geglu_forward(&args, stream);
  }
  isobit::test::LaunchRecorder mock_;
  ScopedRuntime scope_{&mock_};
};

TEST_F(GegluDispatch, FollowsTheTensorsDevice) {
  mock_.capabilities = {90, 103, 80};
  for (const int device : {0, 1, 2, 1}) ASSERT_EQ(run(device, 14336), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(mock_.launches.size(), 4u);
  EXPECT_EQ(mock_.launches[0].device, 0);
  EXPECT_EQ(mock_.launches[1].device, 1);
  EXPECT_EQ(mock_.launches[2].device, 2);
  EXPECT_EQ(mock_.launches[3].device, 1);
}

TEST_F(GegluDispatch, BoundaryOnDeviceOne) {
  mock_.capabilities = {90, 103};
  ASSERT_EQ(run(1, 8192), ISOBIT_OK);
  ASSERT_EQ(run(1, 8193), ISOBIT_OK);
  ASSERT_EQ(run(1, 8192, "row"), ISOBIT_OK);
  ASSERT_EQ(run(1, 8192, "tile"), ISOBIT_OK);
  ASSERT_EQ(mock_.launches.size(), 4u);
  const void* row = mock_.launches[2].kernel;
  const void* tile = mock_.launches[3].kernel;
  EXPECT_NE(row, tile);
  EXPECT_EQ(mock_.launches[0].kernel, row);
  EXPECT_EQ(mock_.launches[1].kernel, tile);
  EXPECT_EQ(mock_.launches[1].shape.block.x, 128u);
}

TEST_F(GegluDispatch, PassesTheStream) {
  mock_.capabilities = {90};
  int stream = 0;
  ASSERT_EQ(run(0, 64, nullptr, &stream), ISOBIT_OK);
  EXPECT_EQ(mock_.launches.at(0).stream, &stream);
}

TEST_F(GegluDispatch, RefusesWhatItCannotRun) {
  mock_.capabilities = {75, 90};
  EXPECT_EQ(run(0, 64), ISOBIT_UNSUPPORTED);
  const std::string message = isobit_last_error();
  EXPECT_NE(message.find("tile: needs compute capability 8.0 to 12.9, device 0 has 7.5"), std::string::npos) << message;
  EXPECT_NE(message.find("row: needs"), std::string::npos) << message;
  EXPECT_NE(message.find("cpu: runs on the CPU"), std::string::npos) << message;
  EXPECT_EQ(run(1, 64, "cpu"), ISOBIT_UNSUPPORTED);
  EXPECT_EQ(run(7, 64), ISOBIT_DEVICE_ERROR);
  EXPECT_TRUE(mock_.launches.empty());
}

TEST_F(GegluDispatch, EmptyCallsLaunchNothing) {
  mock_.capabilities = {90};
  EXPECT_EQ(run(0, 0), ISOBIT_OK) << isobit_last_error();
  EXPECT_TRUE(mock_.launches.empty());
}

}  // namespace
}  // namespace isobit::geglu::test
