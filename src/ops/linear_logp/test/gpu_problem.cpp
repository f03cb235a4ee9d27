#include "ops/linear_logp/test/gpu_problem.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned char kGuardByte = 0x3C;

void expect_ok(cudaError_t error) { EXPECT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

template <class T>
DeviceMemory to_device(const std::vector<T>& host, size_t misalignment = 0) {
  DeviceMemory memory(host.size() * sizeof(T), misalignment);
  memory.upload(host.data());
  return memory;
}

isobit_tensor on_device(isobit_tensor view, const DeviceMemory& memory) {
  view.device_type = ISOBIT_CUDA;
  view.data = memory.data();
  return view;
}

DeviceMemory make_workspace(const isobit_linear_logp_args& args, const GpuOptions& options) {
  size_t minimum = 0;
  size_t recommended = 0;
  EXPECT_EQ(isobit_linear_logp_workspace(&args, &minimum, &recommended), ISOBIT_OK) << isobit_last_error();
  if (options.workspace_bytes > 0) return DeviceMemory(std::max(minimum, options.workspace_bytes));
  return DeviceMemory(options.minimum_workspace ? minimum : recommended);
}

}  // namespace

DeviceMemory::DeviceMemory(size_t bytes, size_t misalignment) : bytes_(bytes), misalignment_(misalignment) {
  expect_ok(cudaMalloc(reinterpret_cast<void**>(&base_), bytes + misalignment + 2 * kGuard));
  expect_ok(cudaMemset(base_, kGuardByte, bytes + misalignment + 2 * kGuard));
  expect_ok(cudaMemset(data(), 0xA5, bytes));
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(misalignment_, other.misalignment_);
  return *this;
}

DeviceMemory::~DeviceMemory() { cudaFree(base_); }

void DeviceMemory::upload(const void* host) const {
  if (bytes_ > 0) expect_ok(cudaMemcpy(data(), host, bytes_, cudaMemcpyHostToDevice));
}

void DeviceMemory::download(void* host) const {
  if (bytes_ > 0) expect_ok(cudaMemcpy(host, data(), bytes_, cudaMemcpyDeviceToHost));
}

bool DeviceMemory::guards_intact() const {
  if (base_ == nullptr) return true;
  std::vector<unsigned char> all(bytes_ + misalignment_ + 2 * kGuard);
  expect_ok(cudaMemcpy(all.data(), base_, all.size(), cudaMemcpyDeviceToHost));
  const size_t begin = kGuard + misalignment_;
  for (size_t i = 0; i < all.size(); ++i) {
    if ((i < begin || i >= begin + bytes_) && all[i] != kGuardByte) return false;
  }
  return true;
}

GpuProblem::GpuProblem(const Problem& problem, size_t misalignment)
    : problem_(problem),
      hidden_(to_device(problem.hidden, misalignment)),
      weight_(to_device(problem.weight, misalignment)),
      bias_(to_device(problem.bias)),
      temperature_(to_device(problem.temperature)),
      target_(to_device(problem.target)) {}

isobit_linear_logp_args GpuProblem::args() const {
  isobit_linear_logp_args args = problem_.args();
  args.hidden = on_device(args.hidden, hidden_);
  args.weight = on_device(args.weight, weight_);
  args.target = on_device(args.target, target_);
  if (!problem_.bias.empty()) args.bias = on_device(args.bias, bias_);
  if (!problem_.temperature.empty()) args.temperature = on_device(args.temperature, temperature_);
  return args;
}

isobit_linear_logp_args GpuProblem::shard_args(int64_t first, int64_t last) const {
  isobit_linear_logp_args all = args();
  all.weight.data = static_cast<uint16_t*>(all.weight.data) + first * problem_.weight_stride;
  all.weight.shape[0] = last - first;
  if (!problem_.bias.empty()) {
    all.bias.data = static_cast<float*>(all.bias.data) + first;
    all.bias.shape[0] = last - first;
  }
  all.first_id = first;
  all.vocab_size = problem_.shape.vocab;
  return all;
}

GpuOutputs::GpuOutputs(const Problem& problem, unsigned wanted) : problem_(problem), wanted_(wanted) {
  Outputs host(problem, wanted_);
  for (int i = 0; i < kParts; ++i) {
    if (part(&host, i)->bytes() > 0) memory_[i] = DeviceMemory(part(&host, i)->bytes());
  }
}

Guarded* GpuOutputs::part(Outputs* outputs, int index) {
  Guarded* const parts[kParts] = {&outputs->logp,         &outputs->lse,    &outputs->entropy, &outputs->rank,
                                  &outputs->target_logit, &outputs->top_id, &outputs->top_logp};
  return parts[index];
}

void GpuOutputs::attach(isobit_linear_logp_args* args) {
  Outputs host(problem_, wanted_);
  host.attach(args);
  isobit_tensor* const views[kParts] = {&args->logp,         &args->lse,    &args->entropy, &args->rank,
                                        &args->target_logit, &args->top_id, &args->top_logp};
  for (int i = 0; i < kParts; ++i) {
    if (memory_[i].bytes() > 0) *views[i] = on_device(*views[i], memory_[i]);
  }
}

void GpuOutputs::poison() const {
  for (const DeviceMemory& memory : memory_) {
    if (memory.bytes() > 0) expect_ok(cudaMemset(memory.data(), 0xA5, memory.bytes()));
  }
}

Outputs GpuOutputs::fetch() const {
  expect_ok(cudaDeviceSynchronize());
  Outputs host(problem_, wanted_);
  for (int i = 0; i < kParts; ++i) {
    if (memory_[i].bytes() == 0) continue;
    memory_[i].download(part(&host, i)->data());
    EXPECT_TRUE(memory_[i].guards_intact()) << "output " << i;
  }
  return host;
}

void call_gpu(const isobit_linear_logp_args& args, const GpuOutputs& outputs, const GpuOptions& options) {
  expect_ok(cudaDeviceSynchronize());
  if (!options.graph) {
    EXPECT_EQ(isobit_linear_logp(&args, options.stream), ISOBIT_OK) << isobit_last_error();
    return;
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  expect_ok(cudaStreamBeginCapture(options.stream, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(isobit_linear_logp(&args, options.stream), ISOBIT_OK) << isobit_last_error();
  expect_ok(cudaStreamEndCapture(options.stream, &graph));
  expect_ok(cudaGraphInstantiate(&executable, graph, 0));
  for (int replay = 0; replay < 2; ++replay) {
    outputs.poison();
    expect_ok(cudaDeviceSynchronize());
    expect_ok(cudaGraphLaunch(executable, options.stream));
    expect_ok(cudaDeviceSynchronize());
  }
  expect_ok(cudaGraphExecDestroy(executable));
  expect_ok(cudaGraphDestroy(graph));
}

Outputs run_gpu(const Problem& problem, unsigned wanted, const GpuOptions& options) {
  const GpuProblem device(problem, options.misalignment);
  GpuOutputs outputs(problem, wanted);
  isobit_linear_logp_args args = device.args();
  args.kernel = options.kernel;
  outputs.attach(&args);
  const DeviceMemory workspace = make_workspace(args, options);
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.bytes();
  call_gpu(args, outputs, options);
  Outputs host = outputs.fetch();
  EXPECT_TRUE(workspace.guards_intact());
  return host;
}

ShardedRun run_gpu_sharded(const Problem& problem, const std::vector<int64_t>& cuts, unsigned wanted,
                           const GpuOptions& options) {
  const GpuProblem device(problem, options.misalignment);
  // The logits of all targets, which a shard call with rank reads.
  GpuOutputs logits(problem, Outputs::kLogit);
  logits.target_logit().upload(run_gpu(problem, Outputs::kLogit, options).target_logit.data());
  GpuOutputs outputs(problem, wanted | Outputs::kLogit);

  std::vector<int64_t> borders = {0};
  borders.insert(borders.end(), cuts.begin(), cuts.end());
  borders.push_back(problem.shape.vocab);
  std::vector<DeviceMemory> memory;
  std::vector<isobit_linear_logp_state> states;
  std::vector<std::string> bytes;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    isobit_linear_logp_args args = device.shard_args(borders[i], borders[i + 1]);
    args.kernel = options.kernel;
    outputs.attach(&args);
    args.target_logit.data = logits.target_logit().data();
    size_t state_bytes = 0;
    EXPECT_EQ(isobit_linear_logp_state_bytes(&args, &state_bytes), ISOBIT_OK) << isobit_last_error();
    memory.emplace_back(state_bytes);
    const DeviceMemory workspace = make_workspace(args, options);
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.bytes();
    EXPECT_EQ(isobit_linear_logp_shard(&args, memory.back().data(), options.stream), ISOBIT_OK) << isobit_last_error();
    expect_ok(cudaDeviceSynchronize());
    EXPECT_TRUE(workspace.guards_intact());
    EXPECT_TRUE(memory.back().guards_intact());
    bytes.emplace_back(state_bytes, '\0');
    memory.back().download(bytes.back().data());
    states.insert(states.begin(), {borders[i], borders[i + 1] - borders[i], memory.back().data()});
  }
  isobit_linear_logp_args args = device.args();
  args.hidden = {};
  args.weight = {};
  args.bias = {};
  args.vocab_size = problem.shape.vocab;
  args.kernel = options.kernel;
  outputs.attach(&args);
  EXPECT_EQ(isobit_linear_logp_merge(&args, states.data(), static_cast<int32_t>(states.size()), options.stream),
            ISOBIT_OK)
      << isobit_last_error();
  return {outputs.fetch(), bytes};
}

void pad_rows(Problem* problem, int64_t stride) {
  const auto pad = [&](std::vector<uint16_t>* data, int64_t rows, int64_t* old_stride) {
    std::vector<uint16_t> padded(static_cast<size_t>(rows * stride), 0x7FC0);  // NaN
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(&padded[row * stride], &(*data)[row * *old_stride], problem->shape.width * sizeof(uint16_t));
    }
    *data = padded;
    *old_stride = stride;
  };
  pad(&problem->hidden, problem->shape.rows, &problem->hidden_stride);
  pad(&problem->weight, problem->shape.vocab, &problem->weight_stride);
}

}  // namespace isobit::linear_logp::test
