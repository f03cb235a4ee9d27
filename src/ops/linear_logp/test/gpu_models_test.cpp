// Bytes of every row at the vocabularies and widths of real models: whatever the call around a row looks like, the row
// has the bytes that one call over all rows gave it, and those of the CPU backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "numerics/bf16.h"
#include "ops/linear_logp/test/gpu_problem.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kWanted = Outputs::kLogp | Outputs::kLse | Outputs::kEntropy;
constexpr int64_t kRows = 4200;
constexpr int64_t kProbe = 7;  // every seventh row keeps its place when its neighbours change
constexpr int64_t kIgnoredRow = 21;
const char* const kKernels[] = {"sm90", "sm80"};

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Sums of four uniform numbers, nearly normal: hundreds of millions of them in well under a second.
std::vector<uint16_t> nearly_normal(int64_t count, float scale, uint64_t seed) {
  std::vector<uint16_t> data(static_cast<size_t>(count));
  const float unit = scale / (65536.0f * std::sqrt(4.0f / 12.0f));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t x = mix(mix(static_cast<uint64_t>(i) + (seed << 40)));
    const auto sum = static_cast<int>((x & 0xFFFF) + (x >> 16 & 0xFFFF) + (x >> 32 & 0xFFFF) + (x >> 48));
    data[i] = numerics::bf16_from_float(unit * static_cast<float>(sum - 131070));
  }
  return data;
}

Problem model_problem(int64_t width, int64_t vocab) {
  Problem p;
  p.shape = {kRows, width, vocab};
  p.hidden_stride = width;
  p.weight_stride = width;
  p.hidden = nearly_normal(kRows * width, 1.0f, 1);
  p.weight = nearly_normal(vocab * width, 4.0f / std::sqrt(static_cast<float>(width)), 2);
  for (int64_t row = 0; row < kRows; ++row) p.target.push_back(static_cast<int64_t>(mix(row + 77) % vocab));
  p.target[kIgnoredRow] = -100;
  p.set_hidden(35, 3, 1e4f);  // leaves the short path
  p.set_hidden(36, 1, INFINITY);
  p.target[70] = vocab;  // no such id
  return p;
}

// Operands on the device, and calls on windows of their rows.
class Model {
 public:
  Model(int64_t width, int64_t vocab)
      : problem_(model_problem(width, vocab)), device_(problem_), workspace_(workspace_bytes(kRows)) {}

  isobit_linear_logp_args args(int64_t first, int64_t rows, const char* kernel = nullptr) const {
    isobit_linear_logp_args args = device_.args();
    window(&args, first, rows);
    args.kernel = kernel;
    return args;
  }
  size_t workspace_bytes(int64_t rows, const char* kernel = nullptr) const {
    isobit_linear_logp_args call = args(0, rows, kernel);
    attached(&call, rows);
    size_t bytes = 0;
    EXPECT_EQ(isobit_linear_logp_workspace(&call, nullptr, &bytes), ISOBIT_OK) << isobit_last_error();
    return bytes;
  }
  // What a call on [first, first + rows) writes; in a workspace of options.workspace_bytes, if the call runs in it.
  Outputs run(int64_t first, int64_t rows, const GpuOptions& options, unsigned wanted = kWanted) const {
    const Problem shape = shape_of(rows);
    GpuOutputs outputs(shape, wanted);
    isobit_linear_logp_args call = args(first, rows, options.kernel);
    outputs.attach(&call);
    size_t minimum = 0;
    EXPECT_EQ(isobit_linear_logp_workspace(&call, &minimum, nullptr), ISOBIT_OK) << isobit_last_error();
    call.workspace = workspace_.data();
    call.workspace_bytes = options.minimum_workspace     ? minimum
                           : options.workspace_bytes > 0 ? std::max(minimum, options.workspace_bytes)
                                                         : workspace_.bytes();
    EXPECT_LE(minimum, workspace_.bytes());
    call_gpu(call, outputs, options);
    return outputs.fetch();
  }
  Outputs run_sharded(int64_t first, int64_t rows, const std::vector<int64_t>& borders, const char* kernel) const;
  // Replaces the hidden rows that are no probes, on the device alone.
  void replace_neighbours(uint64_t seed);
  // Every stride-th row on the CPU.
  Outputs run_cpu(int64_t stride) const;
  bool workspace_intact() const { return workspace_.guards_intact(); }

 private:
  Problem shape_of(int64_t rows) const {
    Problem p;
    p.shape = {rows, problem_.shape.width, problem_.shape.vocab};
    return p;
  }
  void attached(isobit_linear_logp_args* call, int64_t rows) const {
    const Problem shape = shape_of(rows);
    Outputs(shape, kWanted).attach(call);
    for (isobit_tensor* view : {&call->logp, &call->lse, &call->entropy}) view->device_type = ISOBIT_CUDA;
  }
  void window(isobit_linear_logp_args* args, int64_t first, int64_t rows) const {
    args->hidden.data = static_cast<uint16_t*>(args->hidden.data) + first * problem_.hidden_stride;
    args->target.data = static_cast<int64_t*>(args->target.data) + first;
    args->hidden.shape[0] = rows;
    args->target.shape[0] = rows;
  }

  Problem problem_;
  GpuProblem device_;
  DeviceMemory workspace_;
};

Outputs Model::run_sharded(int64_t first, int64_t rows, const std::vector<int64_t>& borders, const char* kernel) const {
  const Problem shape = shape_of(rows);
  GpuOutputs outputs(shape, kWanted);
  std::vector<DeviceMemory> memory;
  std::vector<isobit_linear_logp_state> states;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    isobit_linear_logp_args call = device_.shard_args(borders[i], borders[i + 1]);
    window(&call, first, rows);
    call.kernel = kernel;
    outputs.attach(&call);
    call.workspace = workspace_.data();
    call.workspace_bytes = workspace_.bytes();
    size_t bytes = 0;
    EXPECT_EQ(isobit_linear_logp_state_bytes(&call, &bytes), ISOBIT_OK) << isobit_last_error();
    memory.emplace_back(bytes);
    EXPECT_EQ(isobit_linear_logp_shard(&call, memory.back().data(), nullptr), ISOBIT_OK) << isobit_last_error();
    states.insert(states.begin(), {borders[i], borders[i + 1] - borders[i], memory.back().data()});
  }
  isobit_linear_logp_args call = args(first, rows, kernel);
  call.hidden = {};
  call.weight = {};
  call.vocab_size = problem_.shape.vocab;
  outputs.attach(&call);
  EXPECT_EQ(isobit_linear_logp_merge(&call, states.data(), static_cast<int32_t>(states.size()), nullptr), ISOBIT_OK)
      << isobit_last_error();
  return outputs.fetch();
}

void Model::replace_neighbours(uint64_t seed) {
  const int64_t width = problem_.shape.width;
  std::vector<uint16_t> other = nearly_normal(kRows * width, 1.0f, seed);
  for (int64_t row = 0; row < kRows; row += kProbe) {
    std::copy_n(problem_.hidden.begin() + row * width, width, other.begin() + row * width);
  }
  std::fill_n(other.begin() + width, width, uint16_t{0x7FC0});  // NaN beside a probe
  EXPECT_EQ(cudaMemcpy(device_.args().hidden.data, other.data(), other.size() * 2, cudaMemcpyHostToDevice),
            cudaSuccess);
}

Outputs Model::run_cpu(int64_t stride) const {
  Problem part = shape_of((kRows + stride - 1) / stride);
  isobit_linear_logp_args call = problem_.args();
  call.hidden.shape[0] = part.shape.rows;
  call.hidden.stride[0] = stride * problem_.hidden_stride;
  call.target.shape[0] = part.shape.rows;
  call.target.stride[0] = stride;
  Outputs outputs(part, kWanted);
  outputs.attach(&call);
  run_whole(call);
  return outputs;
}

// Borders of `shards` shards, all odd but the last.
std::vector<int64_t> odd_borders(int64_t vocab, int64_t shards) {
  std::vector<int64_t> borders = {0};
  for (int64_t i = 1; i < shards; ++i) borders.push_back((vocab * i / shards + 37 * i % 61) | 1);
  borders.push_back(vocab);
  return borders;
}

class LinearLogpGpuModels : public ::testing::TestWithParam<std::pair<int64_t, int64_t>> {
 protected:
  void SetUp() override {
    model_ = std::make_unique<Model>(GetParam().first, GetParam().second);
    expected_ = std::make_unique<Outputs>(model_->run(0, kRows, {.kernel = "sm90"}));
  }
  void expect_rows(int64_t first, const Outputs& part, const std::string& what) {
    rows_ += part.rows;
    for (int64_t row = 0; row < part.rows; ++row) {
      ASSERT_EQ(part.row_bytes(row), expected_->row_bytes(first + row)) << what << ", row " << first + row;
    }
  }
  void batches_and_positions();
  void chunks();
  void streams_and_graphs();
  void shards();
  void neighbours();
  void every_part() {
    using Self = LinearLogpGpuModels;
    for (const auto part :
         {&Self::batches_and_positions, &Self::chunks, &Self::streams_and_graphs, &Self::shards, &Self::neighbours}) {
      (this->*part)();
      if (HasFatalFailure()) return;
    }
  }

  std::unique_ptr<Model> model_;
  std::unique_ptr<Outputs> expected_;
  int64_t rows_ = 0;  // compared so far
};

void LinearLogpGpuModels::batches_and_positions() {
  for (const int64_t rows : {1, 2, 3, 8, 17, 33, 43, 44, 45, 46, 64, 65, 128, 257, 1024, 4096}) {
    for (const int64_t first : {0, 13, 35, 104}) {
      for (const char* kernel : kKernels) {
        const std::string what = std::to_string(rows) + " rows, " + kernel;
        expect_rows(first, model_->run(first, rows, {.kernel = kernel}), what);
      }
    }
    const Outputs plain = model_->run(13, rows, {}, Outputs::kLogp | Outputs::kLse);
    for (int64_t row = 0; row < rows; ++row) {
      ASSERT_EQ(plain.row_bytes(row), expected_->row_bytes(13 + row).substr(0, 8)) << "without entropy, row " << row;
    }
  }
}

void LinearLogpGpuModels::chunks() {
  for (const char* kernel : kKernels) {
    expect_rows(0, model_->run(0, kRows, {.kernel = kernel, .minimum_workspace = true}), "smallest workspace");
    for (const int64_t rows : {1, 7, 255, 256, 257, 1000}) {
      const size_t bytes = model_->workspace_bytes(rows, kernel);
      expect_rows(2, model_->run(2, 1100, {.kernel = kernel, .workspace_bytes = bytes}), "chunks");
    }
  }
}

void LinearLogpGpuModels::streams_and_graphs() {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (const char* kernel : kKernels) {
    for (const bool graph : {false, true}) {
      for (const int64_t rows : {5, 300}) {
        expect_rows(30, model_->run(30, rows, {.kernel = kernel, .stream = stream, .graph = graph}), "stream or graph");
      }
    }
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

void LinearLogpGpuModels::shards() {
  for (const int64_t count : {1, 2, 3, 8, 16}) {
    const std::vector<int64_t> borders = odd_borders(GetParam().second, count);
    for (const char* kernel : kKernels) {
      const std::string what = std::to_string(count) + " shards, " + kernel;
      expect_rows(20, model_->run_sharded(20, 19, borders, kernel), what);
      expect_rows(900, model_->run_sharded(900, 200, borders, kernel), what);
    }
  }
}

void LinearLogpGpuModels::neighbours() {
  model_->replace_neighbours(3);
  for (const int64_t rows : {3, 46, 257, 4096}) {
    for (const char* kernel : kKernels) {
      const Outputs found = model_->run(0, rows, {.kernel = kernel});
      for (int64_t row = 0; row < rows; ++row) {
        const bool same = found.row_bytes(row) == expected_->row_bytes(row);
        // Rows that were replaced must differ, which shows that the comparison sees a change.
        ASSERT_EQ(same, row % kProbe == 0) << rows << " rows, " << kernel << ", row " << row;
      }
    }
  }
}

TEST_P(LinearLogpGpuModels, BytesOfEveryRow) {
  constexpr int64_t kStride = 1399;
  const Outputs cpu = model_->run_cpu(kStride);
  ASSERT_EQ(cpu.rows, 4);
  for (int64_t i = 0; i < cpu.rows; ++i) ASSERT_EQ(cpu.row_bytes(i), expected_->row_bytes(i * kStride)) << "cpu " << i;
  every_part();
  EXPECT_TRUE(model_->workspace_intact());
  RecordProperty("rows_compared", std::to_string(rows_));
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearLogpGpuModels,
                         ::testing::Values(std::pair{4096, 151936}, std::pair{2880, 201088}, std::pair{640, 262144},
                                           std::pair{2048, 50257}, std::pair{1152, 262208}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.first) + "x" + std::to_string(shape.param.second);
                         });

}  // namespace
}  // namespace isobit::linear_logp::test
