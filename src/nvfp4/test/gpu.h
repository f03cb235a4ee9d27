// Kernels of the NVFP4 products on a GPU, against the CPU backend byte for byte (compute capability 9.0).
#pragma once

#include <initializer_list>

#include "core/test/device_arena.h"
#include "nvfp4/test/calls.h"

namespace isobit::test {

// A problem's arena and its workspace, between guard bytes, on device 0.
template <class Problem>
class DeviceProblem {
 public:
  DeviceProblem(const Problem& problem, const char* kernel, bool minimum_workspace = false)
      : memory_(problem.arena.bytes), args_(problem.args(memory_.data(), {ISOBIT_CUDA, 0})) {
    args_.kernel = kernel;
    size_t minimum = 0;
    EXPECT_EQ(Problem::kCalls.workspace(&args_, &minimum, &args_.workspace_bytes), ISOBIT_OK) << isobit_last_error();
    if (minimum_workspace) args_.workspace_bytes = minimum;
    guarded_ = std::make_unique<GuardedBytes>(args_.workspace_bytes);
    workspace_ = std::make_unique<DeviceArena>(guarded_->all);
    args_.workspace = static_cast<std::byte*>(workspace_->data()) + GuardedBytes::kGuard;
  }
  const typename Problem::Args* args() const { return &args_; }
  void upload(const Problem& problem) const { memory_.upload(problem.arena.bytes); }
  void download(Problem* problem) {
    memory_.download(&problem->arena.bytes);
    workspace_->download(&guarded_->all);
    EXPECT_TRUE(guarded_->intact()) << "bytes beside the workspace were written";
  }

 private:
  DeviceArena memory_;
  typename Problem::Args args_;
  std::unique_ptr<GuardedBytes> guarded_;
  std::unique_ptr<DeviceArena> workspace_;
};

// Every one of `kernels`, each with the recommended and with the least workspace.
template <class Problem>
void expect_cpu_bytes_on_gpu(std::initializer_list<const char*> kernels, const typename Problem::ShapeType& shape) {
  Problem cpu(shape);
  ASSERT_EQ(cpu.run_cpu(), ISOBIT_OK) << isobit_last_error();
  for (const char* kernel : kernels) {
    for (const bool minimum_workspace : {false, true}) {
      Problem gpu(shape);
      DeviceProblem<Problem> device(gpu, kernel, minimum_workspace);
      ASSERT_EQ(Problem::kCalls.run(device.args(), nullptr), ISOBIT_OK) << isobit_last_error();
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      device.download(&gpu);
      EXPECT_TRUE(gpu.arena.bytes == cpu.arena.bytes)
          << kernel << ", " << shape.rows << " rows: " << gpu.arena.stray_write();
    }
  }
}

// The first call of a kernel, inside a graph, which is then replayed on fresh outputs.
template <class Problem>
void expect_cpu_bytes_of_graph(const char* kernel, const typename Problem::ShapeType& shape) {
  Problem cpu(shape, 5), gpu(shape, 5);
  ASSERT_EQ(cpu.run_cpu(), ISOBIT_OK);
  DeviceProblem<Problem> device(gpu, kernel);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(Problem::kCalls.run(device.args(), stream), ISOBIT_OK) << isobit_last_error();
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (int replay = 0; replay < 2; ++replay) {
    device.upload(gpu);
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    device.download(&gpu);
    EXPECT_TRUE(gpu.arena.bytes == cpu.arena.bytes) << kernel;
    gpu.arena.poison_outputs();
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

}  // namespace isobit::test
