// geglu forward and backward on separate, dense halves.
#include <isobit/geglu.h>

#include "arrays.h"
#include "bench/bench.h"

namespace isobit::cli {
namespace {

class Geglu final : public Workload {
 public:
  Geglu(const BenchCase& c, bool backward) : kernel_(c.kernel.name), backward_(backward) {
    const int64_t rows = c.shape.at("rows");
    const int64_t columns = c.shape.at("cols");
    elements_ = static_cast<double>(rows) * static_cast<double>(columns);
    for (uint64_t i = 0; i < (backward ? 5u : 3u); ++i) {
      tensors_.emplace_back(c.place, c.dtype, std::vector<int64_t>{rows, columns});
      tensors_.back().fill_random(c.seed + i, 1.0f);
    }
    forward_args_.struct_size = sizeof forward_args_;
    backward_args_.struct_size = sizeof backward_args_;
    forward_args_.threads = backward_args_.threads = c.threads;
    forward_args_.kernel = backward_args_.kernel = kernel_.c_str();
    forward_args_.gelu = backward_args_.gelu = ISOBIT_GELU_TANH;
    forward_args_.gate = backward_args_.gate = tensors_[0].view();
    forward_args_.up = backward_args_.up = tensors_[1].view();
    forward_args_.out = backward_args_.d_out = tensors_[2].view();
    if (backward) {
      backward_args_.d_gate = tensors_[3].view();
      backward_args_.d_up = tensors_[4].view();
    }
  }

  void run(void* stream) override {
    require_ok(backward_ ? isobit_geglu_backward(&backward_args_, stream)
                         : isobit_geglu_forward(&forward_args_, stream));
  }
  double bytes() const override { return static_cast<double>(tensors_.size() * tensors_[0].bytes()); }
  double flops() const override { return elements_ * (backward_ ? 2 : 1); }  // products with up and d_out alone
  double peak_bytes() const override { return static_cast<double>((backward_ ? 2 : 1) * tensors_[0].bytes()); }

 private:
  std::string kernel_;
  bool backward_;
  double elements_ = 0;
  std::vector<Array> tensors_;
  isobit_geglu_forward_args forward_args_ = {};
  isobit_geglu_backward_args backward_args_ = {};
};

}  // namespace

std::unique_ptr<Workload> make_geglu_forward(const BenchCase& bench_case) {
  return std::make_unique<Geglu>(bench_case, false);
}

std::unique_ptr<Workload> make_geglu_backward(const BenchCase& bench_case) {
  return std::make_unique<Geglu>(bench_case, true);
}

}  // namespace isobit::cli
