#include "check/nvfp4_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "arrays.h"
#include "ops/nvfp4_quantize/reference.h"

namespace isobit::cli {
namespace {

namespace oracle = isobit::nvfp4_quantize;

constexpr float kOutScale = 8, kUpScale = 0.75f, kGlobal = 3;

void require(isobit_status status) {
  if (status != ISOBIT_OK) throw std::runtime_error(isobit_last_error());
}

// Where the scale of (row, block) lies; isobit/nvfp4.h has the rule.
size_t scale_place(isobit_nvfp4_layout layout, int64_t row, int64_t block, int64_t blocks) {
  const int64_t tiles = (blocks + 3) / 4;
  int64_t at = row * blocks + block;
  if (layout == ISOBIT_NVFP4_128X4) {
    at = (row / 128 * tiles + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
  } else if (layout == ISOBIT_NVFP4_8X4) {
    at = (row / 8 * tiles + block / 4) * 32 + row % 8 * 4 + block % 4;
  }
  return static_cast<size_t>(at);
}

// A packed matrix on a place; unwritten bytes are A5.
class Placed {
 public:
  Placed(Place place, int64_t rows, int64_t k, isobit_nvfp4_layout layout, int64_t gap)
      : rows_(rows), k_(k), stride_(k / 2 + gap), layout_(layout), codes_(place, static_cast<size_t>(rows * stride_)) {
    require(isobit_nvfp4_scales_shape(layout, rows, k, &padded_rows_, &padded_blocks_));
    scales_ = std::make_unique<Buffer>(place, static_cast<size_t>(padded_rows_ * padded_blocks_));
    codes_.fill(0xA5);
    scales_->fill(0xA5);
  }
  void upload(const Nvfp4Host& from, int64_t first) {
    std::vector<uint8_t> codes(codes_.bytes(), 0xA5), scales(scales_->bytes(), 0x7F);
    for (int64_t row = 0; row < rows_; ++row) {
      std::memcpy(codes.data() + row * stride_, from.codes.data() + (first + row) * k_ / 2,
                  static_cast<size_t>(k_ / 2));
      for (int64_t block = 0; block < k_ / 16; ++block) {
        scales[scale_place(layout_, row, block, k_ / 16)] =
            from.scales[static_cast<size_t>((first + row) * k_ / 16 + block)];
      }
    }
    codes_.upload(codes.data(), codes.size());
    scales_->upload(scales.data(), scales.size());
  }
  std::vector<std::string> download() const {
    std::vector<uint8_t> codes(codes_.bytes()), scales(scales_->bytes());
    codes_.download(codes.data(), codes.size());
    scales_->download(scales.data(), scales.size());
    std::vector<std::string> out;
    for (int64_t row = 0; row < rows_; ++row) {
      std::string bytes(reinterpret_cast<const char*>(codes.data() + row * stride_), static_cast<size_t>(k_ / 2));
      for (int64_t block = 0; block < k_ / 16; ++block) {
        bytes.push_back(static_cast<char>(scales[scale_place(layout_, row, block, k_ / 16)]));
      }
      out.push_back(std::move(bytes));
    }
    return out;
  }
  isobit_nvfp4_matrix view() const {
    const Place place = codes_.place();
    isobit_nvfp4_matrix m = {};
    m.codes = {codes_.data(), ISOBIT_UINT8, place.type, place.id, 2, {rows_, k_ / 2}, {stride_, 1}};
    m.scales = {scales_->data(),    ISOBIT_UINT8, place.type, place.id, 2, {padded_rows_, padded_blocks_},
                {padded_blocks_, 1}};
    m.layout = layout_;
    return m;
  }

 private:
  int64_t rows_, k_, stride_;
  isobit_nvfp4_layout layout_;
  Buffer codes_;
  int64_t padded_rows_ = 0, padded_blocks_ = 0;
  std::unique_ptr<Buffer> scales_;
};

// False if the kernel does not take such a call: not every kernel reads every layout and stride.
template <class Args, class Query, class Run>
bool run_with_workspace(Args* args, const Nvfp4Call& call, Place place, Query query, Run run) {
  size_t minimum = 0, recommended = 0;
  const isobit_status status = query(args, &minimum, &recommended);
  if (status == ISOBIT_UNSUPPORTED) return false;
  require(status);
  args->workspace_bytes = call.minimum_workspace ? minimum : recommended;
  const Buffer workspace(place, std::max<size_t>(args->workspace_bytes, 1));
  args->workspace = workspace.data();
  require(run(args, nullptr));
  synchronise(place);
  return true;
}

double code_value(const std::string& bytes, int64_t column) {
  const auto pair = static_cast<uint8_t>(bytes[static_cast<size_t>(column / 2)]);
  return oracle::reference_e2m1(static_cast<uint8_t>(pair >> (column % 2 * 4) & 15));
}

int64_t weight_rows(const Kernel& kernel, const Nvfp4CaseShape& shape) {
  return kernel.op == "nvfp4_geglu" ? 2 * shape.n : kernel.op == "nvfp4_linear" ? shape.n : 0;
}

uint8_t scale_byte(Nvfp4Values values, uint32_t bits) {
  if (values == Nvfp4Values::kExact) return static_cast<uint8_t>(0x30 + 8 * (bits % 3));  // 1/2, 1, 2
  if (values == Nvfp4Values::kWide) return static_cast<uint8_t>(1 + bits % 0x7E);         // up to 448
  return static_cast<uint8_t>(0x30 + bits % 16);                                          // 1/2 to 15/8
}

}  // namespace

Nvfp4Host::Nvfp4Host(int64_t matrix_rows, int64_t matrix_k, uint64_t seed, Nvfp4Values values)
    : rows(matrix_rows),
      k(matrix_k),
      codes(static_cast<size_t>(rows * k / 2)),
      scales(static_cast<size_t>(rows * k / 16)) {
  const auto draw = [&](size_t i, uint64_t stream) {
    return static_cast<uint32_t>(std::fabs(random_value(seed + stream, i, 1.0f)) * 0x1p20f);
  };
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(draw(i, 0));
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = scale_byte(values, draw(i, 1));
}

double Nvfp4Host::value(int64_t row, int64_t column) const {
  const uint8_t pair = codes[static_cast<size_t>((row * k + column) / 2)];
  const uint8_t scale = scales[static_cast<size_t>((row * k + column) / 16)];
  return oracle::reference_e2m1(static_cast<uint8_t>(pair >> (column % 2 * 4) & 15)) * oracle::reference_e4m3(scale);
}

Nvfp4Case::Nvfp4Case(Kernel kernel, Nvfp4CaseShape shape, isobit_dtype dtype, uint64_t seed, Nvfp4Values values,
                     int32_t device)
    : kernel_(std::move(kernel)),
      place_{kernel_.place(), kernel_.place() == ISOBIT_CPU ? 0 : device},
      shape_(shape),
      dtype_(dtype),
      seed_(seed),
      x_(shape.m, shape.k, 2 * seed, values),
      weight_(weight_rows(kernel_, shape), shape.k, 2 * seed + 100, values),
      x_scale_(values == Nvfp4Values::kNormal ? 0.1f / std::sqrt(static_cast<float>(shape.k)) : 0x1p-8f) {}

std::vector<std::string> Nvfp4Case::run(const Nvfp4Call& call) const {
  if (kernel_.op == "nvfp4_quantize") return run_quantize(call);
  return kernel_.op == "nvfp4_linear" ? run_linear(call) : run_geglu(call);
}

double Nvfp4Case::worst_error(int64_t row, const std::string& bytes) const {
  if (kernel_.op == "nvfp4_quantize") return quantize_error(row, bytes);
  return kernel_.op == "nvfp4_linear" ? linear_error(row, bytes) : geglu_error(row, bytes);
}

std::vector<std::string> Nvfp4Case::run_quantize(const Nvfp4Call& call) const {
  Array x(place_, dtype_, {shape_.m, shape_.k});
  x.fill_random(seed_, 1.0f);
  Placed out(place_, call.rows, shape_.k, call.layout, call.gap);
  isobit_nvfp4_quantize_args args = ISOBIT_NVFP4_QUANTIZE_ARGS_INIT;
  args.kernel = kernel_.name.c_str();
  args.threads = call.threads;
  args.x = x.view();
  args.x.data = static_cast<char*>(args.x.data) + call.first_row * shape_.k * dtype_bytes(dtype_);
  args.x.shape[0] = call.rows;
  args.global_scale.value = kGlobal;
  args.out = out.view();
  require(isobit_nvfp4_quantize(&args, nullptr));
  synchronise(place_);
  return out.download();
}

std::vector<std::string> Nvfp4Case::run_linear(const Nvfp4Call& call) const {
  Placed x(place_, call.rows, shape_.k, call.layout, call.gap);
  Placed weight(place_, shape_.n, shape_.k, ISOBIT_NVFP4_128X4, 0);
  x.upload(x_, call.first_row);
  weight.upload(weight_, 0);
  Array out(place_, dtype_, {call.rows, shape_.n + call.gap});
  out.poison();
  isobit_nvfp4_linear_args args = ISOBIT_NVFP4_LINEAR_ARGS_INIT;
  args.kernel = kernel_.name.c_str();
  args.threads = call.threads;
  args.x = x.view();
  args.weight = weight.view();
  args.x_scale.value = x_scale_;
  args.out = out.view();
  args.out.shape[1] = shape_.n;
  if (!run_with_workspace(&args, call, place_, isobit_nvfp4_linear_workspace, isobit_nvfp4_linear)) return {};
  const std::vector<unsigned char> bytes = out.download();
  std::vector<std::string> rows;
  for (int64_t row = 0; row < call.rows; ++row) {
    const auto size = static_cast<size_t>(dtype_bytes(dtype_));
    rows.emplace_back(
        reinterpret_cast<const char*>(bytes.data()) + static_cast<size_t>(row * (shape_.n + call.gap)) * size,
        static_cast<size_t>(shape_.n) * size);
  }
  return rows;
}

std::vector<std::string> Nvfp4Case::run_geglu(const Nvfp4Call& call) const {
  Placed x(place_, call.rows, shape_.k, call.layout, call.gap);
  Placed weight(place_, 2 * shape_.n, shape_.k, ISOBIT_NVFP4_128X4, 0);
  Placed out(place_, call.rows, shape_.n, call.layout, call.gap);
  x.upload(x_, call.first_row);
  weight.upload(weight_, 0);
  isobit_nvfp4_geglu_args args = ISOBIT_NVFP4_GEGLU_ARGS_INIT;
  args.kernel = kernel_.name.c_str();
  args.threads = call.threads;
  args.x = x.view();
  args.weight = weight.view();
  args.x_scale.value = x_scale_;
  args.up_scale.value = kUpScale;
  args.out_scale.value = kOutScale;
  args.out = out.view();
  args.gelu = ISOBIT_GELU_TANH;
  if (!run_with_workspace(&args, call, place_, isobit_nvfp4_geglu_workspace, isobit_nvfp4_geglu)) return {};
  return out.download();
}

// The oracle gives the bytes themselves: any other one is an error beyond every bound.
double Nvfp4Case::quantize_error(int64_t row, const std::string& bytes) const {
  Array x({ISOBIT_CPU, 0}, dtype_, {shape_.m, shape_.k});
  x.fill_random(seed_, 1.0f);
  const std::vector<float> values = x.download_floats();
  for (int64_t block = 0; block < shape_.k / 16; ++block) {
    float one[16];
    std::copy_n(values.data() + row * shape_.k + block * 16, 16, one);
    const oracle::ReferenceBlock expected = oracle::reference_block(one, kGlobal);
    if (static_cast<uint8_t>(bytes[static_cast<size_t>(shape_.k / 2 + block)]) != expected.scale) return INFINITY;
    for (int64_t i = 0; i < 16; ++i) {
      const auto pair = static_cast<uint8_t>(bytes[static_cast<size_t>(block * 8 + i / 2)]);
      if ((pair >> (i % 2 * 4) & 15) != expected.codes[i]) return INFINITY;
    }
  }
  return 0;
}

Nvfp4Case::Dot Nvfp4Case::dot(int64_t row, int64_t weight_row) const {
  Dot out = {0, 0};
  for (int64_t i = 0; i < shape_.k; ++i) {
    const double product = x_.value(row, i) * weight_.value(weight_row, i) * static_cast<double>(x_scale_);
    out.sum += product;
    out.absolute += std::fabs(product);
  }
  return out;
}

// A step of the chain truncates 17 terms to 2^-25 of the largest and rounds toward zero to 24 bits; no partial sum is
// beyond the sum of magnitudes. Then a product with the scale and the output's rounding.
double Nvfp4Case::linear_error(int64_t row, const std::string& bytes) const {
  const int64_t blocks = shape_.k / 16;
  const double steps = static_cast<double>(blocks) * (17 * 0x1p-25 + 0x1p-23);
  double worst = 0;
  for (int64_t column = 0; column < shape_.n; ++column) {
    const Dot expected = dot(row, column);
    double got = 0;
    if (dtype_ == ISOBIT_BF16) {
      uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + 2 * column, 2);
      got = static_cast<double>(bf16_to_float(bits));
    } else {
      float value = 0;
      std::memcpy(&value, bytes.data() + 4 * column, 4);
      got = static_cast<double>(value);
    }
    const double chain = steps * expected.absolute;
    const double rounding = (dtype_ == ISOBIT_BF16 ? 0x1p-8 : 0x1p-22) * std::fabs(expected.sum);
    worst = std::max(worst, std::fabs(got - expected.sum) / (chain + rounding + 1e-30));
  }
  return worst;
}

// A code is at most one unit of its block's scale off: half the distance of 4 and 6, or the clipping at 6 of a scale
// that was rounded down by up to 1/16. A hundredth more for the hidden value's own error.
double Nvfp4Case::geglu_error(int64_t row, const std::string& bytes) const {
  double worst = 0;
  for (int64_t i = 0; i < shape_.n; ++i) {
    const double a = dot(row, 2 * i).sum;
    const double up = dot(row, 2 * i + 1).sum * static_cast<double>(kUpScale);
    const double u = std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a);
    const double hidden = a * (1 + std::tanh(u)) / 2 * up * static_cast<double>(kOutScale);
    const double scale =
        oracle::reference_e4m3(static_cast<uint8_t>(bytes[static_cast<size_t>(shape_.n / 2 + i / 16)]));
    worst = std::max(worst, std::fabs(code_value(bytes, i) * scale - hidden) / (1.01 * scale));
  }
  return worst;
}

}  // namespace isobit::cli
