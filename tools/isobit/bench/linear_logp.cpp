// linear_logp forward, and forward and backward in one call, of N tokens.
#include <isobit/linear_logp.h>

#include <cmath>

#include "arrays.h"
#include "bench/bench.h"
#include "ops/linear_logp/bench/cases.h"

namespace isobit::cli {
namespace {

class LinearLogpForward final : public Workload {
 public:
  explicit LinearLogpForward(const BenchCase& c)
      : n_(c.shape.at("N")),
        h_(c.shape.at("H")),
        v_(c.shape.at("V")),
        hidden_(c.place, c.dtype, {n_, h_}),
        weight_(c.place, c.dtype, {v_, h_}),
        target_(c.place, ISOBIT_INT64, {n_}),
        logp_(c.place, ISOBIT_FP32, {n_}),
        lse_(c.place, ISOBIT_FP32, {n_}),
        kernel_(c.kernel.name) {
    hidden_.fill_random(c.seed, 1.0f);
    weight_.fill_random(c.seed + 1, 1.0f / std::sqrt(static_cast<float>(h_ > 0 ? h_ : 1)));
    std::vector<int64_t> targets;
    for (int64_t n = 0; n < n_; ++n) targets.push_back(v_ > 0 ? n * 7919 % v_ : 0);
    target_.fill_integers(targets);
    args_.threads = c.threads;
    args_.kernel = kernel_.c_str();
    args_.hidden = hidden_.view();
    args_.weight = weight_.view();
    args_.target = target_.view();
    args_.logp = logp_.view();
    args_.lse = lse_.view();
    size_t minimum = 0;
    require_ok(isobit_linear_logp_workspace(&args_, &minimum, &args_.workspace_bytes));
    workspace_.emplace_back(c.place, args_.workspace_bytes);
    args_.workspace = workspace_[0].data();
  }

  const isobit_linear_logp_args& args() const { return args_; }
  void run(void* stream) override { require_ok(isobit_linear_logp(&args_, stream)); }
  double bytes() const override { return linear_logp::forward_bytes({n_, h_, v_}); }
  double flops() const override { return linear_logp::forward_flops({n_, h_, v_}); }
  double peak_bytes() const override {
    return static_cast<double>(args_.workspace_bytes + logp_.bytes() + lse_.bytes());
  }

 private:
  int64_t n_, h_, v_;
  Array hidden_, weight_, target_, logp_, lse_;
  std::string kernel_;
  std::vector<Buffer> workspace_;
  isobit_linear_logp_args args_ = ISOBIT_LINEAR_LOGP_ARGS_INIT;
};

// logp, lse, and from d_logp of every row d_hidden and d_weight in bf16.
class LinearLogpForwardBackward final : public Workload {
 public:
  explicit LinearLogpForwardBackward(const BenchCase& c)
      : forward_(c),
        d_logp_(c.place, ISOBIT_FP32, {c.shape.at("N")}),
        d_hidden_(c.place, ISOBIT_BF16, {c.shape.at("N"), c.shape.at("H")}),
        d_weight_(c.place, ISOBIT_BF16, {c.shape.at("V"), c.shape.at("H")}) {
    d_logp_.fill_random(c.seed + 2, 1.0f);
    args_.forward = forward_.args();
    args_.d_logp = d_logp_.view();
    args_.d_hidden = d_hidden_.view();
    args_.d_weight = d_weight_.view();
    size_t minimum = 0;
    require_ok(isobit_linear_logp_backward_workspace(&args_, &minimum, &args_.forward.workspace_bytes));
    workspace_.emplace_back(c.place, args_.forward.workspace_bytes);
    args_.forward.workspace = workspace_[0].data();
  }

  void run(void* stream) override { require_ok(isobit_linear_logp_backward(&args_, stream)); }
  double bytes() const override {
    return forward_.bytes() + static_cast<double>(d_logp_.bytes() + d_hidden_.bytes() + d_weight_.bytes());
  }
  double flops() const override { return 3 * forward_.flops(); }  // that of the logits again is not counted
  double peak_bytes() const override {
    return static_cast<double>(args_.forward.workspace_bytes + d_hidden_.bytes() + d_weight_.bytes());
  }

 private:
  LinearLogpForward forward_;
  Array d_logp_, d_hidden_, d_weight_;
  std::vector<Buffer> workspace_;
  isobit_linear_logp_backward_args args_ = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
};

}  // namespace

std::unique_ptr<Workload> make_linear_logp_forward_backward(const BenchCase& bench_case) {
  return std::make_unique<LinearLogpForwardBackward>(bench_case);
}

std::vector<Shape> linear_logp_backward_figures(isobit_device_type device) {
  std::vector<Shape> shapes;
  for (const auto& [n, h, v] :
       device == ISOBIT_CPU ? linear_logp::cpu_backward_shapes() : linear_logp::gpu_backward_shapes()) {
    shapes.push_back({{"N", n}, {"H", h}, {"V", v}});
  }
  return shapes;
}

std::unique_ptr<Workload> make_linear_logp_forward(const BenchCase& bench_case) {
  return std::make_unique<LinearLogpForward>(bench_case);
}

std::vector<Shape> linear_logp_forward_figures(isobit_device_type device) {
  std::vector<Shape> shapes;
  for (const auto& [n, h, v] :
       device == ISOBIT_CPU ? linear_logp::cpu_forward_shapes() : linear_logp::gpu_forward_shapes()) {
    shapes.push_back({{"N", n}, {"H", h}, {"V", v}});
  }
  return shapes;
}

}  // namespace isobit::cli
