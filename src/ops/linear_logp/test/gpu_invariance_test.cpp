// A row's bytes do not depend on anything but the row: batch, position, chunks, streams, graphs, SM count, kernel.
#include <gtest/gtest.h>

#include "core/runtime.h"
#include "ops/linear_logp/test/gpu_problem.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kWanted = Outputs::kLogp | Outputs::kLse | Outputs::kEntropy | Outputs::kLogit;

// The CUDA runtime with another number of multiprocessors.
class FewerMultiprocessors final : public Runtime {
 public:
  explicit FewerMultiprocessors(int count) : count_(count) {}
  int device_count() override { return cuda().device_count(); }
  Status properties(int device, DeviceProperties* out) override {
    const Status s = cuda().properties(device, out);
    out->multiprocessors = count_;
    return s;
  }
  Status launch(int device, const void* kernel, const LaunchShape& shape, void** parameters, void* stream) override {
    return cuda().launch(device, kernel, shape, parameters, stream);
  }
  Status allow_shared_memory(int device, const void* kernel, uint32_t bytes) override {
    return cuda().allow_shared_memory(device, kernel, bytes);
  }
  Status encode_tensor_map(const TensorMapSpec& spec, TensorMap* out) override {
    return cuda().encode_tensor_map(spec, out);
  }
  Status fill_bytes(int device, void* data, int value, size_t bytes, void* stream) override {
    return cuda().fill_bytes(device, data, value, bytes, stream);
  }
  Status copy_to_host(int device, void* host, const void* data, size_t bytes, void* stream) override {
    return cuda().copy_to_host(device, host, data, bytes, stream);
  }

 private:
  static Runtime& cuda() { return default_runtime(); }
  int count_;
};

// `rows` rows of `all`, from `first` on.
Problem rows_of(const Problem& all, int64_t first, int64_t rows) {
  Problem part = all;
  part.shape.rows = rows;
  const auto cut = [&](auto* data, int64_t per_row) {
    using Vector = std::remove_pointer_t<decltype(data)>;
    if (!data->empty()) *data = Vector(data->begin() + first * per_row, data->begin() + (first + rows) * per_row);
  };
  cut(&part.hidden, all.hidden_stride);
  cut(&part.target, all.shape.targets);
  cut(&part.temperature, 1);
  return part;
}

class LinearLogpGpuInvariance : public ::testing::Test {
 protected:
  void SetUp() override {
    problem_ = random_problem({1100, 256, 5003}, 31);
    problem_.target[17] = -100;
    problem_.set_hidden(40, 3, 1e3f);  // leaves the short path
    expected_ = std::make_unique<Outputs>(run_gpu(problem_, kWanted, {.kernel = "sm90"}));
  }
  void expect_rows(int64_t first, const Outputs& part, const std::string& what) const {
    for (int64_t row = 0; row < part.rows; ++row) {
      ASSERT_EQ(part.row_bytes(row), expected_->row_bytes(first + row)) << what << ", row " << first + row;
    }
  }
  Problem problem_;
  std::unique_ptr<Outputs> expected_;
};

TEST_F(LinearLogpGpuInvariance, MatchesCpu) {
  const Outputs cpu = run(problem_, kWanted, Workspace::kRecommended, 16);
  expect_rows(0, cpu, "cpu");
}

TEST_F(LinearLogpGpuInvariance, BatchAndPosition) {
  for (const int64_t rows : {1, 2, 3, 8, 9, 16, 17, 32, 33, 43, 44, 45, 46, 64, 65, 128, 129, 257, 1024}) {
    for (const int64_t first : {0, 13, 76}) {
      for (const char* kernel : {"sm90", "sm80"}) {
        expect_rows(first, run_gpu(rows_of(problem_, first, rows), kWanted, {.kernel = kernel}),
                    std::to_string(rows) + " rows, " + kernel);
      }
    }
  }
}

TEST_F(LinearLogpGpuInvariance, Chunks) {
  for (const char* kernel : {"sm90", "sm80"}) {
    expect_rows(0, run_gpu(problem_, kWanted, {.kernel = kernel, .minimum_workspace = true}), "smallest workspace");
    for (const int64_t rows : {200, 255, 256, 257, 600}) {
      Problem sized = rows_of(problem_, 0, rows);
      const GpuProblem device(sized);
      isobit_linear_logp_args args = device.args();
      GpuOutputs outputs(sized, kWanted);
      outputs.attach(&args);
      size_t bytes = 0;
      ASSERT_EQ(isobit_linear_logp_workspace(&args, nullptr, &bytes), ISOBIT_OK);
      expect_rows(0, run_gpu(problem_, kWanted, {.kernel = kernel, .workspace_bytes = bytes}), "workspace in between");
    }
  }
}

TEST_F(LinearLogpGpuInvariance, StreamsAndGraphs) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (const char* kernel : {"sm90", "sm80"}) {
    for (const bool graph : {false, true}) {
      expect_rows(0, run_gpu(problem_, kWanted, {.kernel = kernel, .stream = stream, .graph = graph}), "stream");
      expect_rows(5, run_gpu(rows_of(problem_, 5, 40), kWanted, {.kernel = kernel, .stream = stream, .graph = graph}),
                  "stream, few rows");
    }
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(LinearLogpGpuInvariance, Multiprocessors) {
  for (const int count : {1, 2, 7, 64, 131}) {
    FewerMultiprocessors fewer(count);
    const ScopedRuntime scope(&fewer);
    expect_rows(0, run_gpu(problem_, kWanted, {.kernel = "sm90"}), std::to_string(count) + " multiprocessors");
    expect_rows(100, run_gpu(rows_of(problem_, 100, 30), kWanted, {.kernel = "sm90"}), "few rows");
  }
}

// Two row groups, ten tiles a multiprocessor or many more, and laps that blocks keep pace in.
TEST(LinearLogpGpuMultiprocessors, LargeShape) {
  const Problem problem = random_problem({2200, 1024, 16500}, 41);
  const std::string all = run_gpu(problem, kWanted, {.kernel = "sm90"}).bytes();
  EXPECT_EQ(all, run_gpu(problem, kWanted, {.kernel = "sm80"}).bytes());
  const std::string few = run_gpu(rows_of(problem, 7, 48), kWanted, {.kernel = "sm90"}).bytes();
  for (const int count : {3, 17, 66, 100, 131}) {
    FewerMultiprocessors fewer(count);
    const ScopedRuntime scope(&fewer);
    EXPECT_EQ(all, run_gpu(problem, kWanted, {.kernel = "sm90"}).bytes()) << count << " multiprocessors";
    EXPECT_EQ(few, run_gpu(rows_of(problem, 7, 48), kWanted, {.kernel = "sm90"}).bytes()) << count;
  }
}

TEST_F(LinearLogpGpuInvariance, Shards) {
  for (const char* kernel : {"sm90", "sm80"}) {
    for (const std::vector<int64_t>& cuts : std::vector<std::vector<int64_t>>{
             {2500}, {1667, 3334}, {625, 1250, 1876, 2501, 3126, 3752, 4377}, {4992}, {1, 127, 128, 129, 1024, 1025}}) {
      expect_rows(0, run_gpu_sharded(problem_, cuts, kWanted, {.kernel = kernel}).outputs, "shards");
    }
  }
}

TEST_F(LinearLogpGpuInvariance, RepeatedRuns) {
  const GpuProblem device(problem_);
  GpuOutputs outputs(problem_, kWanted);
  isobit_linear_logp_args args = device.args();
  outputs.attach(&args);
  size_t bytes = 0;
  ASSERT_EQ(isobit_linear_logp_workspace(&args, nullptr, &bytes), ISOBIT_OK);
  const DeviceMemory workspace(bytes);
  args.workspace = workspace.data();
  args.workspace_bytes = bytes;
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 10; ++j) ASSERT_EQ(isobit_linear_logp(&args, nullptr), ISOBIT_OK);
    ASSERT_EQ(outputs.fetch().bytes(), expected_->bytes()) << i;
  }
}

TEST(LinearLogpGpuRepeated, TenThousandRunsOneResult) {
  for (const auto& [rows, kernel] : {std::pair{150, "sm90"}, std::pair{20, "sm90"}, std::pair{150, "sm80"}}) {
    const Problem problem = random_problem({rows, 256, 5003}, 51);
    const GpuProblem device(problem);
    GpuOutputs outputs(problem, kWanted);
    isobit_linear_logp_args args = device.args();
    args.kernel = kernel;
    outputs.attach(&args);
    size_t bytes = 0;
    ASSERT_EQ(isobit_linear_logp_workspace(&args, nullptr, &bytes), ISOBIT_OK);
    const DeviceMemory workspace(bytes);
    args.workspace = workspace.data();
    args.workspace_bytes = bytes;
    const std::string expected = run_gpu(problem, kWanted, {.kernel = "sm90"}).bytes();
    for (int i = 0; i < 10000; ++i) {
      outputs.poison();
      ASSERT_EQ(isobit_linear_logp(&args, nullptr), ISOBIT_OK) << isobit_last_error();
      ASSERT_EQ(outputs.fetch().bytes(), expected) << kernel << ", " << rows << " rows, run " << i;
    }
  }
}

}  // namespace
}  // namespace isobit::linear_logp::test
