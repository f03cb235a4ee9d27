// The table of kernels and the CUDA plan, with mocked devices.
#include <gtest/gtest.h>

#include <string>

#include "core/build_config.h"
#include "core/test/launch_recorder.h"
#include "ops/nvfp4_quantize/cuda/plan.h"
#include "ops/nvfp4_quantize/test/problem.h"

namespace isobit::nvfp4_quantize::test {
namespace {

class Nvfp4QuantizeDispatch : public testing::Test {
 protected:
  isobit_status run(const Shape& shape, int device = 0, void* stream = nullptr) {
    Problem problem(shape, Values::kNormal);
    const isobit_nvfp4_quantize_args args = problem.args(problem.arena.data(), {ISOBIT_CUDA, device});
    return isobit_nvfp4_quantize(&args, stream);
  }
  void SetUp() override {
    if (!kBuiltWithCuda) GTEST_SKIP() << "this build has no CUDA kernels to dispatch to";
  }
  isobit::test::LaunchRecorder mock_;
  ScopedRuntime scope_{&mock_};
};

TEST_F(Nvfp4QuantizeDispatch, OneLaunchOnTheTensorsDeviceAndStream) {
  int stream = 0;
  for (const int capability : {80, 86, 89, 90, 100, 103, 110, 120, 121}) {
    mock_.capabilities[1] = capability;
    mock_.launches.clear();
    ASSERT_EQ(run({.rows = 784, .k = 2048}, 1, &stream), ISOBIT_OK) << isobit_last_error();
    ASSERT_EQ(mock_.launches.size(), 1u);
    EXPECT_EQ(mock_.launches[0].device, 1);
    EXPECT_EQ(mock_.launches[0].stream, &stream);
    EXPECT_EQ(mock_.launches[0].shape.grid.x, 448u);  // 896 padded rows of 128 blocks, two a thread block
  }
}

TEST_F(Nvfp4QuantizeDispatch, OldDevicesAreRefused) {
  mock_.capabilities[0] = 75;
  EXPECT_EQ(run({.rows = 1, .k = 16}), ISOBIT_UNSUPPORTED);
  EXPECT_NE(std::string(isobit_last_error()).find("cuda: needs compute capability 8.0 to 12.9"), std::string::npos);
  EXPECT_TRUE(mock_.launches.empty());
}

Params large(int64_t rows, int64_t k) {
  Params params = {};
  params.rows = rows;
  params.k = k;
  params.dtype = ISOBIT_BF16;
  params.x_stride = k;
  params.out.row_stride = k / 2;
  params.out.layout = numerics::ScaleLayout::k128x4;
  return params;
}

// Every (row, block) of the padded scales belongs to exactly one thread of the grid.
TEST(Nvfp4QuantizePlan, CoversEveryPaddedBlockOnce) {
  for (const auto& [rows, k] : {std::pair<int64_t, int64_t>{1, 16}, {784, 2048}, {5, 11008}, {129, 16384}, {300, 80}}) {
    const cuda::Job job = cuda::job_of(large(rows, k));
    const uint64_t row_threads = uint64_t{1} << job.row_threads_log2;
    const uint64_t block_rows = cuda::kThreads / row_threads;
    const uint64_t row_groups = cuda::grid_of(job) / job.pieces;
    EXPECT_EQ(cuda::grid_of(job) % job.pieces, 0u);
    EXPECT_GE(row_groups * block_rows, job.padded_rows);
    EXPECT_LT((row_groups - 1) * block_rows, job.padded_rows);
    EXPECT_GE(job.pieces * row_threads, job.padded_blocks);
    EXPECT_LT((job.pieces - 1) * row_threads, job.padded_blocks);
  }
}

// Rows lie on grid.x, which has room for 2^31 - 1; offsets are 64 bits wide.
TEST(Nvfp4QuantizePlan, RowCountsBeyondSixteenBits) {
  EXPECT_EQ(cuda::grid_of(cuda::job_of(large(65536, 4096))), 65536u);
  EXPECT_EQ(cuda::grid_of(cuda::job_of(large(262141, 4096))), 262144u);
  EXPECT_EQ(cuda::job_of(large(149911, 28672)).x_row_bytes * 149911, int64_t{149911} * 28672 * 2);
  EXPECT_GT(cuda::grid_of(cuda::job_of(large(kNvfp4MaxRows - 127, 8192))), uint64_t{1} << 31);
}

TEST(Nvfp4QuantizePlan, VectorsNeedAlignedRows) {
  Params params = large(4, 64);
  EXPECT_TRUE(cuda::job_of(params).vector_loads);
  EXPECT_TRUE(cuda::job_of(params).vector_stores);
  params.x_stride = 68;
  params.out.row_stride = 36;
  EXPECT_FALSE(cuda::job_of(params).vector_loads);
  EXPECT_FALSE(cuda::job_of(params).vector_stores);
  params = large(4, 64);
  params.x = reinterpret_cast<const void*>(2);
  params.out.codes = reinterpret_cast<uint8_t*>(4);
  EXPECT_FALSE(cuda::job_of(params).vector_loads);
  EXPECT_FALSE(cuda::job_of(params).vector_stores);
}

}  // namespace
}  // namespace isobit::nvfp4_quantize::test
