// What the tests on two GPUs share: the world, steps that all ranks take together, a captured call.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>

#include "isobit/tensor_parallel.h"
#include "nccl/test/gpu_ranks.h"

namespace isobit::nccl::test {

inline constexpr int kRanks = 2;

inline Status passed_on_tp(isobit_status status) {
  return status == ISOBIT_OK ? Status() : fail(status, "%s", isobit_tp_last_error());
}

inline void set_device(isobit_linear_logp_args* args, int device) {
  for (isobit_tensor* tensor : {&args->hidden, &args->weight, &args->bias, &args->target, &args->temperature,
                                &args->logp, &args->lse, &args->entropy, &args->target_logit}) {
    tensor->device_id = device;
  }
}

inline void set_device(isobit_linear_logp_backward_args* args, int device) {
  set_device(&args->forward, device);
  for (isobit_tensor* tensor :
       {&args->d_logp, &args->d_lse, &args->d_entropy, &args->d_hidden, &args->d_weight, &args->d_bias}) {
    tensor->device_id = device;
  }
}

// A call as a graph, made and launched by its rank's thread.
class CapturedCall {
 public:
  CapturedCall() = default;
  ~CapturedCall() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
  }
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;

  // Thread-local: the other rank's thread may do in the meantime what a capture forbids.
  template <class Call>
  Status capture(cudaStream_t stream, const Call& call) {
    cudaGraph_t graph = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    const Status status = call();
    cudaStreamEndCapture(stream, &graph);
    if (!status.ok()) return status;
    const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    return error == cudaSuccess ? status : fail(ISOBIT_DEVICE_ERROR, "%s", cudaGetErrorString(error));
  }
  Status replay(cudaStream_t stream) const {
    const cudaError_t error = cudaGraphLaunch(executable_, stream);
    return error == cudaSuccess ? Status() : fail(ISOBIT_DEVICE_ERROR, "%s", cudaGetErrorString(error));
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

class TwoGpus : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = what_is_missing(kRanks);
    if (!missing.empty()) GTEST_SKIP() << missing;
    ASSERT_TRUE(GpuWorld::open(kRanks, &world_).ok()) << last_error();
  }
  static void on_all(const std::function<Status(int)>& call) {
    for (const Answer& answer : on_gpus(kRanks, call)) ASSERT_EQ(answer.status, ISOBIT_OK) << answer.message;
  }

  std::unique_ptr<GpuWorld> world_;
};

}  // namespace isobit::nccl::test
