#include "ops/linear_logp/test/backward_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace isobit::linear_logp::test {
namespace {

class Host final : public Place {
 public:
  int device_type() const override { return ISOBIT_CPU; }
  void* put(const void* host, size_t bytes) override {
    void* const memory = room(bytes);
    std::memcpy(memory, host, bytes);
    return memory;
  }
  void* room(size_t bytes) override {
    memory_.push_back(std::make_unique<Guarded>(bytes));
    return memory_.back()->data();
  }
  void fetch(void* host, const void* place, size_t bytes) override { std::memcpy(host, place, bytes); }

 private:
  std::vector<std::unique_ptr<Guarded>> memory_;
};

size_t size_of(isobit_dtype dtype) { return dtype == ISOBIT_FP32 ? 4 : 2; }

// Addends of accumulating buffers: finite, of both signs.
std::vector<float> addends(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = 0.001f * static_cast<float>(static_cast<int>(i * 37 % 201) - 100);
  return values;
}

}  // namespace

BackwardCase random_case(const Shape& shape, uint64_t seed, float scale) {
  BackwardCase c;
  c.problem = random_problem(shape, seed, scale);
  std::mt19937_64 random(seed + 1000);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < shape.rows * shape.targets; ++i) c.d_logp.push_back(normal(random));
  for (int64_t i = 0; i < shape.rows; ++i) c.d_lse.push_back(0.1f * normal(random));
  for (int64_t n = 0; n < shape.rows; ++n) {
    for (int64_t k = 0; k < shape.targets; ++k) {
      int64_t& target = c.problem.target[static_cast<size_t>(n * shape.targets + k)];
      if (n % 7 == 3) target = c.problem.ignore_index;
      if (n % 19 == 11) target = shape.vocab;
    }
  }
  return c;
}

BackwardCall::BackwardCall(const BackwardCase& c, Place* place, const BackwardOptions& options) : place_(place) {
  args = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
  args.accumulate = c.accumulate ? 1 : 0;
  args.subtract_p = options.subtract_p;
  args.forward = c.problem.args();
  args.forward.kernel = options.kernel;
  put_inputs(c);
  make_outputs(c);

  size_t minimum = 0;
  size_t recommended = 0;
  EXPECT_EQ(isobit_linear_logp_backward_workspace(&args, &minimum, &recommended), ISOBIT_OK) << isobit_last_error();
  const size_t queried = options.minimum ? minimum : recommended;
  args.forward.workspace_bytes = options.workspace_bytes > 0 ? options.workspace_bytes : queried;
  args.forward.workspace = place->room(args.forward.workspace_bytes);
  if (options.saves) {
    size_t bytes = 0;
    EXPECT_EQ(isobit_linear_logp_saved_bytes(&args, &bytes), ISOBIT_OK) << isobit_last_error();
    saved_ = place->room(bytes);
  }
}

isobit_tensor BackwardCall::on_place(isobit_tensor view, void* data) const {
  view.data = data;
  view.device_type = static_cast<decltype(view.device_type)>(place_->device_type());
  return view;
}

void BackwardCall::put_inputs(const BackwardCase& c) {
  const Problem& p = c.problem;
  const Shape& shape = p.shape;
  const auto put = [&](isobit_tensor* view, const auto& values) {
    if (view->dtype == ISOBIT_NONE) return;
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
    *view = on_place(*view, place_->put(bytes.empty() ? "x" : bytes.data(), std::max<size_t>(bytes.size(), 1)));
  };
  std::vector<uint16_t> weight = p.weight;
  weight.resize(weight.size() + static_cast<size_t>(c.padding * p.weight_stride), 0x7FFF);
  std::vector<float> bias = p.bias;
  if (!bias.empty()) bias.resize(bias.size() + static_cast<size_t>(c.padding), 1.0f);
  args.forward.vocab_size = shape.vocab;
  args.forward.weight.shape[0] = shape.vocab + c.padding;
  if (!bias.empty()) args.forward.bias.shape[0] = shape.vocab + c.padding;
  const auto put_operand = [&](isobit_tensor* view, std::vector<uint16_t> values) {
    if (c.misaligned) values.insert(values.begin(), 0x7FFF);
    put(view, values);
    if (c.misaligned) view->data = static_cast<uint16_t*>(view->data) + 1;
  };
  put_operand(&args.forward.hidden, p.hidden);
  put_operand(&args.forward.weight, weight);
  put(&args.forward.bias, bias);
  put(&args.forward.target, p.target);
  put(&args.forward.temperature, p.temperature);
  if (shape.rows == 0 || !c.d_logp.empty()) {
    args.d_logp = args.forward.target.rank == 1 ? vector(nullptr, ISOBIT_FP32, shape.rows)
                                                : matrix(nullptr, ISOBIT_FP32, shape.rows, shape.targets);
  }
  if (!c.d_lse.empty()) args.d_lse = vector(nullptr, ISOBIT_FP32, shape.rows);
  if (!c.d_entropy.empty()) args.d_entropy = vector(nullptr, ISOBIT_FP32, shape.rows);
  put(&args.d_logp, c.d_logp);
  put(&args.d_lse, c.d_lse);
  put(&args.d_entropy, c.d_entropy);
}

isobit_tensor BackwardCall::output(const isobit_tensor& view, std::string BackwardBytes::*to, int64_t elements,
                                   bool addend) {
  const size_t bytes = static_cast<size_t>(elements) * size_of(static_cast<isobit_dtype>(view.dtype));
  void* const data = addend ? place_->put(addends(static_cast<size_t>(elements)).data(), bytes)
                            : place_->put(std::string(bytes + 1, '\xA5').data(), bytes);
  written_.push_back({to, data, bytes});
  return on_place(view, data);
}

void BackwardCall::make_outputs(const BackwardCase& c) {
  const Shape& shape = c.problem.shape;
  const int64_t ids = shape.vocab + c.padding;
  const int64_t stride = shape.width + c.weight_margin;
  if (c.hidden_dtype != ISOBIT_NONE) {
    args.d_hidden = output(matrix(nullptr, c.hidden_dtype, shape.rows, shape.width), &BackwardBytes::d_hidden,
                           shape.rows * shape.width, false);
  }
  if (c.weight_dtype != ISOBIT_NONE) {
    args.d_weight = output(matrix(nullptr, c.weight_dtype, ids, shape.width, stride), &BackwardBytes::d_weight,
                           ids * stride, c.accumulate);
  }
  if (c.bias_dtype != ISOBIT_NONE) {
    args.d_bias = output(vector(nullptr, c.bias_dtype, ids), &BackwardBytes::d_bias, ids, c.accumulate);
  }
  if (!c.forward_outputs) return;
  const isobit_tensor of_row = vector(nullptr, ISOBIT_FP32, shape.rows);
  const isobit_tensor of_target =
      args.forward.target.rank == 2 ? matrix(nullptr, ISOBIT_FP32, shape.rows, shape.targets) : of_row;
  args.forward.logp = output(of_target, &BackwardBytes::logp, shape.rows * shape.targets, false);
  args.forward.lse = output(of_row, &BackwardBytes::lse, shape.rows, false);
  args.forward.entropy = output(of_row, &BackwardBytes::entropy, shape.rows, false);
}

BackwardBytes BackwardCall::fetch() const {
  BackwardBytes bytes;
  for (const Written& w : written_) {
    (bytes.*w.to).resize(w.bytes);
    place_->fetch((bytes.*w.to).data(), w.data, w.bytes);
  }
  return bytes;
}

BackwardBytes run_backward(const BackwardCase& c, Place* place, const BackwardOptions& options) {
  BackwardCall call(c, place, options);
  if (options.saves) {
    call.args.saved = call.saved();
    EXPECT_EQ(isobit_linear_logp_save(&call.args, options.stream), ISOBIT_OK) << isobit_last_error();
    // Those outputs are the saving call's.
    call.args.forward.logp = call.args.forward.lse = call.args.forward.entropy = {};
  }
  EXPECT_EQ(isobit_linear_logp_backward(&call.args, options.stream), ISOBIT_OK) << isobit_last_error();
  return call.fetch();
}

std::unique_ptr<Place> host_place() { return std::make_unique<Host>(); }

BackwardBytes run_backward_on_cpu(const BackwardCase& c, const BackwardOptions& options) {
  Host host;
  BackwardOptions on_cpu = options;
  on_cpu.kernel = nullptr;
  on_cpu.workspace_bytes = 0;
  return run_backward(c, &host, on_cpu);
}

}  // namespace isobit::linear_logp::test
