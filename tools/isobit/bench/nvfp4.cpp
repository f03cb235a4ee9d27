// The NVFP4 operators: quantiser, gate and up with GeGLU, linear. Packed operands are random codes with scales of 1.
#include <isobit/nvfp4_geglu.h>
#include <isobit/nvfp4_linear.h>
#include <isobit/nvfp4_quantize.h>

#include <random>

#include "arrays.h"
#include "bench/bench.h"
#include "ops/nvfp4_geglu/bench/cases.h"
#include "ops/nvfp4_linear/bench/cases.h"
#include "ops/nvfp4_quantize/bench/cases.h"

namespace isobit::cli {
namespace {

constexpr isobit_nvfp4_layout kLayout = ISOBIT_NVFP4_128X4;

// A packed matrix [rows, k] in memory of the bench's place.
class Packed {
 public:
  Packed(Place place, int64_t rows, int64_t k, uint64_t seed)
      : rows_(rows), k_(k), codes_(place, static_cast<size_t>(rows * k / 2)), scales_(place, scale_bytes(rows, k)) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> words(codes_.bytes() / 8 + 1);
    for (uint64_t& word : words) word = random();
    codes_.upload(words.data(), codes_.bytes());
    scales_.fill(0x38);
  }
  isobit_nvfp4_matrix view() const {
    int64_t rows = 0, blocks = 0;
    require_ok(isobit_nvfp4_scales_shape(kLayout, rows_, k_, &rows, &blocks));
    return {tensor(codes_, rows_, k_ / 2), tensor(scales_, rows, blocks), kLayout, 0};
  }
  double bytes() const { return static_cast<double>(codes_.bytes() + scales_.bytes()); }

 private:
  static size_t scale_bytes(int64_t rows, int64_t k) {
    int64_t padded_rows = 0, blocks = 0;
    require_ok(isobit_nvfp4_scales_shape(kLayout, rows, k, &padded_rows, &blocks));
    return static_cast<size_t>(padded_rows * blocks);
  }
  static isobit_tensor tensor(const Buffer& buffer, int64_t rows, int64_t columns) {
    return {buffer.data(), ISOBIT_UINT8, buffer.place().type, buffer.place().id, 2, {rows, columns}, {columns, 1}};
  }

  int64_t rows_, k_;
  Buffer codes_, scales_;
};

double product(int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

class Quantize final : public Workload {
 public:
  explicit Quantize(const BenchCase& c)
      : kernel_(c.kernel.name),
        x_(c.place, c.dtype, {c.shape.at("M"), c.shape.at("K")}),
        out_(c.place, c.shape.at("M"), c.shape.at("K"), c.seed) {
    x_.fill_random(c.seed, 1.0f);
    args_.struct_size = sizeof args_;
    args_.threads = c.threads;
    args_.kernel = kernel_.c_str();
    args_.x = x_.view();
    args_.global_scale.value = 1.0f;
    args_.out = out_.view();
  }
  void run(void* stream) override { require_ok(isobit_nvfp4_quantize(&args_, stream)); }
  double bytes() const override { return static_cast<double>(x_.bytes()) + out_.bytes(); }
  double flops() const override { return 0; }
  double peak_bytes() const override { return out_.bytes(); }

 private:
  std::string kernel_;
  Array x_;
  Packed out_;
  isobit_nvfp4_quantize_args args_ = {};
};

// Arguments that both products share, and their workspace.
template <class Args, isobit_status (*kQuery)(const Args*, size_t*, size_t*)>
class Product : public Workload {
 public:
  Product(const BenchCase& c, int64_t weight_rows)
      : kernel_(c.kernel.name),
        x_(c.place, c.shape.at("M"), c.shape.at("K"), c.seed),
        weight_(c.place, weight_rows, c.shape.at("K"), c.seed + 1),
        flops_(2 * product(c.shape.at("M"), weight_rows) * static_cast<double>(c.shape.at("K"))) {
    args_.struct_size = sizeof args_;
    args_.threads = c.threads;
    args_.kernel = kernel_.c_str();
    args_.x = x_.view();
    args_.weight = weight_.view();
    args_.x_scale.value = 1.0f / 64;
  }
  double bytes() const override { return x_.bytes() + weight_.bytes() + out_bytes_; }
  double flops() const override { return flops_; }
  double peak_bytes() const override {
    return out_bytes_ + (workspace_.empty() ? 0 : static_cast<double>(workspace_[0].bytes()));
  }

 protected:
  // Once the arguments are whole.
  void prepare(Place place, double out_bytes) {
    out_bytes_ = out_bytes;
    size_t bytes = 0;
    require_ok(kQuery(&args_, nullptr, &bytes));
    if (bytes == 0) return;
    workspace_.emplace_back(place, bytes);
    args_.workspace = workspace_[0].data();
    args_.workspace_bytes = bytes;
  }
  Args args_ = {};

 private:
  std::string kernel_;
  Packed x_, weight_;
  double flops_;
  double out_bytes_ = 0;
  std::vector<Buffer> workspace_;
};

class Linear final : public Product<isobit_nvfp4_linear_args, isobit_nvfp4_linear_workspace> {
 public:
  explicit Linear(const BenchCase& c)
      : Product(c, c.shape.at("N")), out_(c.place, c.dtype, {c.shape.at("M"), c.shape.at("N")}) {
    args_.weight_scale.value = 1.0f;
    args_.out = out_.view();
    prepare(c.place, static_cast<double>(out_.bytes()));
  }
  void run(void* stream) override { require_ok(isobit_nvfp4_linear(&args_, stream)); }

 private:
  Array out_;
};

class Geglu final : public Product<isobit_nvfp4_geglu_args, isobit_nvfp4_geglu_workspace> {
 public:
  explicit Geglu(const BenchCase& c)
      : Product(c, 2 * c.shape.at("I")), out_(c.place, c.shape.at("M"), c.shape.at("I"), c.seed + 2) {
    args_.gate_scale.value = args_.up_scale.value = args_.out_scale.value = 1.0f;
    args_.out = out_.view();
    args_.gelu = ISOBIT_GELU_TANH;
    prepare(c.place, out_.bytes());
  }
  void run(void* stream) override { require_ok(isobit_nvfp4_geglu(&args_, stream)); }

 private:
  Packed out_;
};

}  // namespace

std::vector<Shape> nvfp4_quantize_figures(isobit_device_type) {
  std::vector<Shape> shapes;
  for (const auto& [m, k] : nvfp4_quantize::kShapes) shapes.push_back({{"M", m}, {"K", k}});
  return shapes;
}

std::vector<Shape> nvfp4_linear_figures(isobit_device_type device) {
  std::vector<Shape> shapes;
  const auto add = [&](const nvfp4_linear::BenchShape& s) { shapes.push_back({{"M", s.m}, {"N", s.n}, {"K", s.k}}); };
  if (device == ISOBIT_CPU) {
    for (const auto& shape : nvfp4_linear::kCpuShapes) add(shape);
  } else {
    for (const auto& shape : nvfp4_linear::kGpuShapes) add(shape);
  }
  return shapes;
}

std::vector<Shape> nvfp4_geglu_figures(isobit_device_type device) {
  std::vector<Shape> shapes;
  const auto add = [&](const nvfp4_geglu::BenchShape& s) {
    shapes.push_back({{"M", s.m}, {"K", s.k}, {"I", s.width}});
  };
  if (device == ISOBIT_CPU) {
    for (const auto& shape : nvfp4_geglu::kCpuShapes) add(shape);
  } else {
    for (const auto& shape : nvfp4_geglu::kGpuShapes) add(shape);
  }
  return shapes;
}

std::unique_ptr<Workload> make_nvfp4_quantize(const BenchCase& c) { return std::make_unique<Quantize>(c); }
std::unique_ptr<Workload> make_nvfp4_linear(const BenchCase& c) { return std::make_unique<Linear>(c); }
std::unique_ptr<Workload> make_nvfp4_geglu(const BenchCase& c) { return std::make_unique<Geglu>(c); }

}  // namespace isobit::cli
