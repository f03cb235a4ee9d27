// linear_logp forward on a GPU beside cuBLAS's bare product, in pairs: product, isobit, product, isobit, ... with the
// L2 flushed before each, so that both meet the same clocks. One JSON line per shape, peer and set of outputs.
//
//   linear_logp_bench_gpu [--samples 15] [--kernel sm90] [--options bias,softcap,temperature,rank,top]
//                         [--power cool|hot] [--date 2026-11-29] [N,H,V ...]
//
// The clock depends on how long the card has been busy. cool: a pause before each pair, so that the clock follows what
// a kernel draws; hot: a second of products before each comparison, so that both kernels meet the clock that the power
// limit leaves. Without either, it is what the shapes before have left.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "isobit/linear_logp.h"
#include "ops/linear_logp/bench/gpu_bench.cuh"

namespace {

using namespace isobit::linear_logp::bench;

constexpr int64_t kTop = 8;  // ids of the top list

struct Shape {
  int64_t rows, width, vocab;
};

struct Settings {
  int samples = 15;
  const char* kernel = nullptr;
  std::string options;
  std::string power = "as is";
  std::string date = "unknown";
  std::string command;
  std::vector<Shape> shapes;
};

class Case {
 public:
  Case(const Settings& settings, Shape shape, cublasHandle_t cublas, const cudaDeviceProp& device)
      : settings_(settings),
        shape_(shape),
        padded_vocab_((shape.vocab + 7) / 8 * 8),
        cublas_(cublas),
        device_(device),
        hidden_(shape.rows * shape.width),
        weight_(padded_vocab_ * shape.width),
        logits_(shape.rows * padded_vocab_),
        target_(shape.rows),
        logp_(shape.rows),
        lse_(shape.rows),
        entropy_(shape.rows),
        bias_(shape.vocab),
        rank_(shape.rows),
        top_id_(shape.rows * kTop) {
    fill_normal<<<2048, 256>>>(hidden_.get(), shape.rows * shape.width, 1.0f, 1);
    fill_normal<<<4096, 256>>>(weight_.get(), padded_vocab_ * shape.width, 0.02f, 7777777777ull);
    fill_targets<<<1, 256>>>(target_.get(), shape.rows, shape.vocab);
    require(cudaMemset(bias_.get(), 0, static_cast<size_t>(shape.vocab) * 4), "cudaMemset");
    require(cudaDeviceSynchronize(), "filling");
  }

  void run() {
    if (shape_.rows <= 64) compare_with_stream();
    compare_with_product(false);
    compare_with_product(true);
  }

 private:
  isobit_linear_logp_args args(bool entropy) {
    isobit_linear_logp_args a = ISOBIT_LINEAR_LOGP_ARGS_INIT;
    a.kernel = settings_.kernel;
    a.hidden = view(hidden_.get(), ISOBIT_BF16, shape_.rows, shape_.width);
    a.weight = view(weight_.get(), ISOBIT_BF16, shape_.vocab, shape_.width);
    a.target = view(target_.get(), ISOBIT_INT32, shape_.rows);
    a.logp = view(logp_.get(), ISOBIT_FP32, shape_.rows);
    a.lse = view(lse_.get(), ISOBIT_FP32, shape_.rows);
    if (entropy) a.entropy = view(entropy_.get(), ISOBIT_FP32, shape_.rows);
    const auto asked = [&](const char* option) { return settings_.options.find(option) != std::string::npos; };
    if (asked("bias")) a.bias = view(bias_.get(), ISOBIT_FP32, shape_.vocab);
    if (asked("softcap")) a.softcap = 30.0f;
    if (asked("temperature")) a.temperature_value = 0.7f;
    if (asked("rank")) a.rank = view(rank_.get(), ISOBIT_INT32, shape_.rows);
    if (asked("top")) a.top_id = view(top_id_.get(), ISOBIT_INT32, shape_.rows, kTop);
    return a;
  }

  void product() const {
    const float one = 1.0f;
    const float zero = 0.0f;
    const cublasStatus_t status =
        cublasGemmEx(cublas_, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(padded_vocab_), static_cast<int>(shape_.rows),
                     static_cast<int>(shape_.width), &one, weight_.get(), CUDA_R_16BF, static_cast<int>(shape_.width),
                     hidden_.get(), CUDA_R_16BF, static_cast<int>(shape_.width), &zero, logits_.get(), CUDA_R_16BF,
                     static_cast<int>(padded_vocab_), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    require(status == CUBLAS_STATUS_SUCCESS, "cublasGemmEx");
  }

  void rest() const {
    if (settings_.power == "cool") std::this_thread::sleep_for(std::chrono::milliseconds(40));
  }
  void heat() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (std::chrono::steady_clock::now() < end) {
      for (int i = 0; i < 4; ++i) product();
      require(cudaDeviceSynchronize(), "heating");
    }
  }

  // Pairs of peer and isobit; the first pair warms up.
  template <class Peer>
  void pairs(bool entropy, const char* peer, const std::string& peer_version, Peer run_peer, double peer_scale) {
    isobit_linear_logp_args a = args(entropy);
    size_t bytes = 0;
    require(isobit_linear_logp_workspace(&a, nullptr, &bytes) == ISOBIT_OK, isobit_last_error());
    const Buffer<unsigned char> workspace(static_cast<int64_t>(bytes));
    a.workspace = workspace.get();
    a.workspace_bytes = bytes;
    Timer timer;
    std::vector<double> ours, theirs, ratios;
    if (settings_.power == "hot") heat();
    for (int i = 0; i <= settings_.samples; ++i) {
      rest();
      const double p = timer.time(run_peer) * peer_scale;
      rest();
      const double t = timer.time([&] { require(isobit_linear_logp(&a, nullptr) == ISOBIT_OK, isobit_last_error()); });
      if (i == 0) continue;
      theirs.push_back(p);
      ours.push_back(t);
      ratios.push_back(t / p);
    }
    print(entropy, peer, peer_version, ours, theirs, ratios, bytes);
  }

  void compare_with_product(bool entropy) {
    int version = 0;
    cublasGetVersion(cublas_, &version);
    pairs(
        entropy, "cublas-gemm", "cublas " + std::to_string(version), [&] { product(); }, 1.0);
  }

  // The time in which the copy bandwidth moves the weights once: half of what a copy of them takes.
  void compare_with_stream() {
    const size_t bytes = static_cast<size_t>(shape_.vocab * shape_.width) * 2;
    const Buffer<unsigned char> copy(static_cast<int64_t>(bytes));
    pairs(
        false, "weight-stream", "device copy",
        [&] { require(cudaMemcpyAsync(copy.get(), weight_.get(), bytes, cudaMemcpyDeviceToDevice, nullptr), "copy"); },
        0.5);
  }

  void print(bool entropy, const char* peer, const std::string& peer_version, const std::vector<double>& ours,
             const std::vector<double>& theirs, const std::vector<double>& ratios, size_t workspace) const {
    const double flops =
        2.0 * static_cast<double>(shape_.rows) * static_cast<double>(shape_.width) * static_cast<double>(shape_.vocab);
    const double bytes = 2.0 * static_cast<double>(shape_.width) * static_cast<double>(shape_.rows + shape_.vocab) +
                         12.0 * static_cast<double>(shape_.rows);
    std::printf("{\"op\":\"linear_logp_forward\",\"kernel\":\"%s\",\"outputs\":\"%s\",",
                settings_.kernel == nullptr ? "sm90" : settings_.kernel, entropy ? "logp,lse,entropy" : "logp,lse");
    if (!settings_.options.empty()) std::printf("\"options\":\"%s\",", settings_.options.c_str());
    std::printf("\"shape\":{\"N\":%lld,\"H\":%lld,\"V\":%lld},\"dtype\":\"bfloat16\",\"gpu\":\"%s\",",
                static_cast<long long>(shape_.rows), static_cast<long long>(shape_.width),
                static_cast<long long>(shape_.vocab), device_.name);
    std::printf("\"samples_us\":[");
    for (size_t i = 0; i < ours.size(); ++i) std::printf("%s%.1f", i > 0 ? "," : "", ours[i]);
    std::printf("],\"median_us\":%.2f,\"bytes\":%.0f,\"flops\":%.0f,\"peer\":\"%s\",\"peer_version\":\"%s\",",
                median(ours), bytes, flops, peer, peer_version.c_str());
    std::printf(
        "\"peer_median_us\":%.2f,\"ratio\":%.4f,\"peak_bytes\":%zu,\"warm\":false,\"power\":\"%s\",\"command\":\"%s\",",
        median(theirs), median(ratios), workspace, settings_.power.c_str(), settings_.command.c_str());
    std::printf("\"date\":\"%s\"}\n", settings_.date.c_str());
    std::fflush(stdout);
  }

  const Settings& settings_;
  Shape shape_;
  int64_t padded_vocab_;
  cublasHandle_t cublas_;
  const cudaDeviceProp& device_;
  Buffer<uint16_t> hidden_, weight_, logits_;
  Buffer<int32_t> target_;
  Buffer<float> logp_, lse_, entropy_, bias_;
  Buffer<int32_t> rank_, top_id_;
};

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 0; i < argc; ++i)
    settings.command += (i > 0 ? " " : "") + std::string(i > 0 ? argv[i] : "linear_logp_bench_gpu");
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--samples") == 0 && i + 1 < argc) {
      settings.samples = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--kernel") == 0 && i + 1 < argc) {
      settings.kernel = argv[++i];
    } else if (std::strcmp(argv[i], "--options") == 0 && i + 1 < argc) {
      settings.options = argv[++i];
    } else if (std::strcmp(argv[i], "--power") == 0 && i + 1 < argc) {
      settings.power = argv[++i];
      require(settings.power == "cool" || settings.power == "hot", "reading --power cool or hot");
    } else if (std::strcmp(argv[i], "--date") == 0 && i + 1 < argc) {
      settings.date = argv[++i];
    } else {
      long long n = 0, h = 0, v = 0;
      require(std::sscanf(argv[i], "%lld,%lld,%lld", &n, &h, &v) == 3, "reading N,H,V");
      settings.shapes.push_back({n, h, v});
    }
  }
  if (settings.shapes.empty()) {
    settings.shapes = {{1, 4096, 151936},    {8, 4096, 151936},    {64, 4096, 151936},   {512, 4096, 151936},
                       {4096, 2048, 32768},  {4096, 2048, 50257},  {4096, 2048, 131072}, {4096, 4096, 151936},
                       {8192, 4096, 128256}, {8192, 2304, 256000}, {16384, 5120, 151936}};
  }
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  cudaDeviceProp device;
  require(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  cublasHandle_t cublas = nullptr;
  require(cublasCreate(&cublas) == CUBLAS_STATUS_SUCCESS, "cublasCreate");
  for (const Shape& shape : settings.shapes) Case(settings, shape, cublas, device).run();
  cublasDestroy(cublas);
  return 0;
}
