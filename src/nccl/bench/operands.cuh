// Operands of the benchmarks over ranks, and the head of their JSON lines.
#pragma once

#include "isobit/tensor_parallel.h"
#include "nccl/bench/ranks.h"
#include "ops/linear_logp/bench/gpu_bench.cuh"

namespace isobit::nccl::bench {

using linear_logp::bench::Buffer;
using linear_logp::bench::median;
using linear_logp::bench::require;
using linear_logp::bench::Timer;

inline void require_ok(isobit_status status, const char* message) { require(status == ISOBIT_OK, message); }

// All operands on one GPU, the whole vocabulary's; the same values on every GPU.
class Operands {
 public:
  Operands(const Shape& shape, int device)
      : shape_(shape),
        device_(device),
        hidden_(shape.rows * shape.width),
        weight_(shape.vocab * shape.width),
        target_(shape.rows),
        outputs_(3 * shape.rows) {
    linear_logp::bench::fill_normal<<<2048, 256>>>(hidden_.get(), shape.rows * shape.width, 1.0f, 1);
    linear_logp::bench::fill_normal<<<4096, 256>>>(weight_.get(), shape.vocab * shape.width, 0.02f, 7777777777ull);
    linear_logp::bench::fill_targets<<<1, 256>>>(target_.get(), shape.rows, shape.vocab);
    require(cudaDeviceSynchronize(), "filling");
  }

  isobit_linear_logp_args args(int64_t first, int64_t last) const {
    isobit_linear_logp_args a = ISOBIT_LINEAR_LOGP_ARGS_INIT;
    a.hidden = here(linear_logp::bench::view(hidden_.get(), ISOBIT_BF16, shape_.rows, shape_.width));
    a.weight =
        here(linear_logp::bench::view(weight_.get() + first * shape_.width, ISOBIT_BF16, last - first, shape_.width));
    a.target = here(linear_logp::bench::view(target_.get(), ISOBIT_INT32, shape_.rows));
    a.logp = here(linear_logp::bench::view(outputs_.get(), ISOBIT_FP32, shape_.rows));
    a.lse = here(linear_logp::bench::view(outputs_.get() + shape_.rows, ISOBIT_FP32, shape_.rows));
    a.entropy = here(linear_logp::bench::view(outputs_.get() + 2 * shape_.rows, ISOBIT_FP32, shape_.rows));
    a.first_id = first;
    a.vocab_size = shape_.vocab;
    return a;
  }

  std::vector<float> outputs() const {
    std::vector<float> host(static_cast<size_t>(3 * shape_.rows));
    require(cudaMemcpy(host.data(), outputs_.get(), host.size() * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    require(cudaMemset(outputs_.get(), 0xA5, host.size() * 4), "cudaMemset");
    return host;
  }

 private:
  isobit_tensor here(isobit_tensor t) const {
    t.device_id = device_;
    return t;
  }

  Shape shape_;
  int device_;
  Buffer<uint16_t> hidden_, weight_;
  Buffer<int32_t> target_;
  Buffer<float> outputs_;
};

// Border i of n: the multiple of 128 below the equal share.
inline int64_t border(const Shape& shape, int i, int n) {
  return i == n ? shape.vocab : shape.vocab * i / n / 128 * 128;
}

class Workspace {
 public:
  Workspace(size_t bytes, isobit_linear_logp_args* args) : memory_(static_cast<int64_t>(bytes)) {
    args->workspace = memory_.get();
    args->workspace_bytes = bytes;
  }

 private:
  Buffer<unsigned char> memory_;
};

inline size_t whole_workspace(const isobit_linear_logp_args& args) {
  size_t bytes = 0;
  require_ok(isobit_linear_logp_workspace(&args, nullptr, &bytes), isobit_last_error());
  return bytes;
}

// No field "kernel": the calls name none, so the device decides.
inline void print_start(const char* what, int ranks, const Shape& shape) {
  std::printf("{\"op\":\"%s\",\"ranks\":%d,\"outputs\":\"logp,lse,entropy\",", what, ranks);
  std::printf("\"shape\":{\"N\":%lld,\"H\":%lld,\"V\":%lld},\"dtype\":\"bfloat16\",",
              static_cast<long long>(shape.rows), static_cast<long long>(shape.width),
              static_cast<long long>(shape.vocab));
}

// The calling thread's device stands for all ranks' devices.
inline void print_end(const Settings& settings) {
  int device = 0;
  cudaDeviceProp properties;
  require(cudaGetDevice(&device), "cudaGetDevice");
  require(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  std::printf("\"gpu\":\"%s\",\"warm\":false,\"command\":\"%s\",\"date\":\"%s\"}\n", properties.name,
              settings.command.c_str(), settings.date.c_str());
  std::fflush(stdout);
}

inline void print_samples(const std::vector<double>& us) {
  std::printf("\"samples_us\":[");
  for (size_t i = 0; i < us.size(); ++i) std::printf("%s%.1f", i > 0 ? "," : "", us[i]);
  std::printf("],\"median_us\":%.2f,", median(us));
}

constexpr int kShares[] = {1, 2, 4, 8, 16};
void measure_training_shares(const Operands& operands, const Shape& shape, const Settings& settings);

}  // namespace isobit::nccl::bench
