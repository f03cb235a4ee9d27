// linear_logp forward + backward on a GPU beside cuBLAS over stored logits, in pairs with the L2 flushed before each,
// so that both meet the same clocks. One JSON line per shape and peer:
//   native         three products over bf16 logits, and between them one kernel that turns a row's logits into dz
//   cublas-gemms   the three products alone
// With --kernels first isobit's time by kernel, on stderr.
//
//   linear_logp_bench_backward [--samples 9] [--accumulate] [--row sm80] [--kernels] [--date 2026-11-30] [N,H,V ...]
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/runtime.h"
#include "ops/linear_logp/bench/gpu_bench.cuh"

namespace {

using namespace isobit::linear_logp::bench;

struct Shape {
  int64_t rows, width, vocab;
};

struct Settings {
  int samples = 9;
  bool accumulate = false;
  bool kernels = false;
  std::string row = "sm90";  // of the table of kernels
  std::string date = "unknown";
  std::string command;
  std::vector<Shape> shapes;
};

__global__ void fill_upstream(float* data, int64_t count) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    data[i] = static_cast<float>(mix(static_cast<uint64_t>(i) + 99) >> 40) * 0x1p-24f - 0.5f;
  }
}

// The peer, not isobit: dz of one row in place of its logits, two passes, as a hand that keeps the logits would write
// it. The approximate exponential is the peer's, so that it is as fast as it can be.
__global__ void __launch_bounds__(512)
    logits_to_dz(__nv_bfloat16* logits, const int32_t* target, const float* upstream, float* logp, int64_t vocab) {
  __shared__ float part[16];
  auto* const row = reinterpret_cast<__nv_bfloat162*>(logits + blockIdx.x * vocab);
  const float target_logit = __bfloat162float(logits[blockIdx.x * vocab + target[blockIdx.x]]);
  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < vocab / 2; i += blockDim.x) {
    const float2 z = __bfloat1622float2(row[i]);
    sum += __expf(z.x) + __expf(z.y);
  }
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, mask);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < 16; ++i) sum += part[i];
  const float gradient = upstream[blockIdx.x];
  const float scale = -gradient / sum;
  for (int64_t i = threadIdx.x; i < vocab / 2; i += blockDim.x) {
    const float2 z = __bfloat1622float2(row[i]);
    float2 dz = make_float2(scale * __expf(z.x), scale * __expf(z.y));
    if (2 * i == target[blockIdx.x]) dz.x += gradient;
    if (2 * i + 1 == target[blockIdx.x]) dz.y += gradient;
    row[i] = __float22bfloat162_rn(dz);
  }
  if (threadIdx.x == 0) logp[blockIdx.x] = target_logit - __logf(sum);
}

// Passes everything on and keeps the time of each launch.
class TimingRuntime final : public isobit::Runtime {
 public:
  int device_count() override { return to_.device_count(); }
  isobit::Status properties(int device, isobit::DeviceProperties* out) override { return to_.properties(device, out); }
  isobit::Status launch(int device, const void* kernel, const isobit::LaunchShape& shape, void** parameters,
                        void* stream) override {
    Launch launch{kernel, nullptr, nullptr};
    require(cudaEventCreate(&launch.start), "cudaEventCreate");
    require(cudaEventCreate(&launch.stop), "cudaEventCreate");
    require(cudaEventRecord(launch.start, static_cast<cudaStream_t>(stream)), "cudaEventRecord");
    const isobit::Status status = to_.launch(device, kernel, shape, parameters, stream);
    require(cudaEventRecord(launch.stop, static_cast<cudaStream_t>(stream)), "cudaEventRecord");
    launches_.push_back(launch);
    return status;
  }
  isobit::Status allow_shared_memory(int device, const void* kernel, uint32_t bytes) override {
    return to_.allow_shared_memory(device, kernel, bytes);
  }
  isobit::Status encode_tensor_map(const isobit::TensorMapSpec& spec, isobit::TensorMap* out) override {
    return to_.encode_tensor_map(spec, out);
  }
  isobit::Status fill_bytes(int device, void* data, int value, size_t bytes, void* stream) override {
    return to_.fill_bytes(device, data, value, bytes, stream);
  }
  isobit::Status copy_to_host(int device, void* host, const void* data, size_t bytes, void* stream) override {
    return to_.copy_to_host(device, host, data, bytes, stream);
  }

  void print() {
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::map<std::string, std::pair<int, float>> total;
    for (const Launch& launch : launches_) {
      const char* name = nullptr;
      float milliseconds = 0.0f;
      require(cudaFuncGetName(&name, launch.kernel), "cudaFuncGetName");
      require(cudaEventElapsedTime(&milliseconds, launch.start, launch.stop), "cudaEventElapsedTime");
      auto& [count, sum] = total[name];
      ++count;
      sum += 1e3f * milliseconds;
    }
    for (const auto& [name, times] : total) {
      std::fprintf(stderr, "%9.1f us in %3d launches of %s\n", static_cast<double>(times.second), times.first,
                   name.c_str());
    }
  }

 private:
  struct Launch {
    const void* kernel;
    cudaEvent_t start, stop;
  };
  isobit::Runtime& to_ = isobit::default_runtime();
  std::vector<Launch> launches_;
};

class Case {
 public:
  Case(const Settings& settings, Shape shape, cublasHandle_t cublas, const cudaDeviceProp& device)
      : settings_(settings),
        shape_(shape),
        cublas_(cublas),
        device_(device),
        hidden_(shape.rows * shape.width),
        weight_(shape.vocab * shape.width),
        logits_(shape.rows * shape.vocab),
        d_hidden_(shape.rows * shape.width),
        d_weight_(shape.vocab * shape.width * (settings.accumulate ? 2 : 1)),
        target_(shape.rows),
        upstream_(shape.rows),
        logp_(shape.rows) {
    require(shape.vocab % 8 == 0, "a multiple of 8 for V");
    fill_normal<<<2048, 256>>>(hidden_.get(), shape.rows * shape.width, 1.0f, 1);
    fill_normal<<<4096, 256>>>(weight_.get(), shape.vocab * shape.width, 0.02f, 7777777777ull);
    fill_targets<<<1, 256>>>(target_.get(), shape.rows, shape.vocab);
    fill_upstream<<<1, 256>>>(upstream_.get(), shape.rows);
    require(cudaMemset(d_weight_.get(), 0, static_cast<size_t>(shape.vocab * shape.width) * 2), "cudaMemset");
    require(cudaDeviceSynchronize(), "filling");
    prepare();
  }

  void run() {
    if (settings_.kernels) print_kernels();
    pairs("native", [&] { native(true); });
    pairs("cublas-gemms", [&] { native(false); });
  }

 private:
  void prepare() {
    args_ = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
    args_.accumulate = settings_.accumulate ? 1 : 0;
    args_.forward.hidden = view(hidden_.get(), ISOBIT_BF16, shape_.rows, shape_.width);
    args_.forward.weight = view(weight_.get(), ISOBIT_BF16, shape_.vocab, shape_.width);
    args_.forward.target = view(target_.get(), ISOBIT_INT32, shape_.rows);
    args_.forward.logp = view(logp_.get(), ISOBIT_FP32, shape_.rows);
    args_.d_logp = view(upstream_.get(), ISOBIT_FP32, shape_.rows);
    args_.d_hidden = view(d_hidden_.get(), ISOBIT_BF16, shape_.rows, shape_.width);
    args_.d_weight =
        view(d_weight_.get(), settings_.accumulate ? ISOBIT_FP32 : ISOBIT_BF16, shape_.vocab, shape_.width);
    size_t bytes = 0;
    args_.forward.kernel = settings_.row.c_str();
    require(isobit_linear_logp_backward_workspace(&args_, nullptr, &bytes) == ISOBIT_OK, isobit_last_error());
    require(cudaMalloc(&args_.forward.workspace, bytes), "cudaMalloc");
    args_.forward.workspace_bytes = bytes;
  }

  // A call without `saved`: forward and backward pass in one.
  void step() { require(isobit_linear_logp_backward(&args_, nullptr) == ISOBIT_OK, isobit_last_error()); }

  void print_kernels() {
    step();
    TimingRuntime timing;
    {
      const isobit::ScopedRuntime scope(&timing);
      step();
    }
    std::fprintf(stderr, "%lld,%lld,%lld, workspace %zu\n", static_cast<long long>(shape_.rows),
                 static_cast<long long>(shape_.width), static_cast<long long>(shape_.vocab),
                 args_.forward.workspace_bytes);
    timing.print();
  }

  // Column-major views: a row-major [a, b] is [b, a].
  void multiply(cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n, int64_t k, const uint16_t* a,
                int64_t lda, const uint16_t* b, int64_t ldb, void* c, int64_t ldc, bool fp32 = false) const {
    const float one = 1.0f;
    const float beta = fp32 ? 1.0f : 0.0f;
    const auto narrow = [](int64_t x) { return static_cast<int>(x); };
    const cublasStatus_t status = cublasGemmEx(
        cublas_, op_a, op_b, narrow(m), narrow(n), narrow(k), &one, a, CUDA_R_16BF, narrow(lda), b, CUDA_R_16BF,
        narrow(ldb), &beta, c, fp32 ? CUDA_R_32F : CUDA_R_16BF, narrow(ldc), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    require(status == CUBLAS_STATUS_SUCCESS, "cublasGemmEx");
  }

  void native(bool with_dz) {
    const auto [n, h, v] = shape_;
    multiply(CUBLAS_OP_T, CUBLAS_OP_N, v, n, h, weight_.get(), h, hidden_.get(), h, logits_.get(), v);
    if (with_dz) {
      logits_to_dz<<<static_cast<unsigned>(n), 512>>>(reinterpret_cast<__nv_bfloat16*>(logits_.get()), target_.get(),
                                                      upstream_.get(), logp_.get(), v);
    }
    multiply(CUBLAS_OP_N, CUBLAS_OP_N, h, n, v, weight_.get(), h, logits_.get(), v, d_hidden_.get(), h);
    multiply(CUBLAS_OP_N, CUBLAS_OP_T, h, v, n, hidden_.get(), h, logits_.get(), v, d_weight_.get(), h,
             settings_.accumulate);
  }

  template <class Peer>
  void pairs(const char* peer, Peer run_peer) {
    Timer timer;
    std::vector<double> ours, theirs, ratios;
    for (int i = 0; i <= settings_.samples; ++i) {
      const double p = timer.time(run_peer);
      const double t = timer.time([&] { step(); });
      if (i == 0) continue;
      theirs.push_back(p);
      ours.push_back(t);
      ratios.push_back(t / p);
    }
    print(peer, ours, theirs, ratios);
  }

  void print(const char* peer, const std::vector<double>& ours, const std::vector<double>& theirs,
             const std::vector<double>& ratios) const {
    const auto [n, h, v] = shape_;
    int version = 0;
    cublasGetVersion(cublas_, &version);
    std::printf("{\"op\":\"linear_logp_forward_backward\",\"kernel\":\"%s\",\"outputs\":\"logp,d_hidden,d_weight%s\",",
                settings_.row.c_str(), settings_.accumulate ? " (fp32, accumulated)" : "");
    std::printf("\"shape\":{\"N\":%lld,\"H\":%lld,\"V\":%lld},\"dtype\":\"bfloat16\",\"gpu\":\"%s\",\"samples_us\":[",
                static_cast<long long>(n), static_cast<long long>(h), static_cast<long long>(v), device_.name);
    for (size_t i = 0; i < ours.size(); ++i) std::printf("%s%.1f", i > 0 ? "," : "", ours[i]);
    const double weights = static_cast<double>(h) * static_cast<double>(n + v);
    std::printf("],\"median_us\":%.2f,\"bytes\":%.0f,\"flops\":%.0f,\"peer\":\"%s\",\"peer_version\":\"cublas %d\",",
                median(ours), 4.0 * weights + 12.0 * static_cast<double>(n),
                8.0 * static_cast<double>(n) * static_cast<double>(h) * static_cast<double>(v), peer, version);
    std::printf("\"peer_median_us\":%.2f,\"ratio\":%.4f,\"peak_bytes\":%zu,\"peer_peak_bytes\":%lld,\"warm\":false,",
                median(theirs), median(ratios), args_.forward.workspace_bytes, static_cast<long long>(2 * n * v));
    std::printf("\"command\":\"%s\",\"date\":\"%s\"}\n", settings_.command.c_str(), settings_.date.c_str());
    std::fflush(stdout);
  }

  const Settings& settings_;
  Shape shape_;
  cublasHandle_t cublas_;
  const cudaDeviceProp& device_;
  Buffer<uint16_t> hidden_, weight_, logits_, d_hidden_, d_weight_;
  Buffer<int32_t> target_;
  Buffer<float> upstream_, logp_;
  isobit_linear_logp_backward_args args_;
};

Settings parse(int argc, char** argv) {
  Settings settings;
  settings.command = "linear_logp_bench_backward";
  for (int i = 1; i < argc; ++i) settings.command += " " + std::string(argv[i]);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--samples") == 0 && i + 1 < argc) {
      settings.samples = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--accumulate") == 0) {
      settings.accumulate = true;
    } else if (std::strcmp(argv[i], "--row") == 0 && i + 1 < argc) {
      settings.row = argv[++i];
    } else if (std::strcmp(argv[i], "--kernels") == 0) {
      settings.kernels = true;
    } else if (std::strcmp(argv[i], "--date") == 0 && i + 1 < argc) {
      settings.date = argv[++i];
    } else {
      long long n = 0, h = 0, v = 0;
      require(std::sscanf(argv[i], "%lld,%lld,%lld", &n, &h, &v) == 3, "reading N,H,V");
      settings.shapes.push_back({n, h, v});
    }
  }
  if (settings.shapes.empty()) settings.shapes = {{4096, 2048, 131072}, {4096, 4096, 151936}, {8192, 4096, 151936}};
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
