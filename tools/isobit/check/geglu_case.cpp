#include "check/geglu_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "arrays.h"
#include "ops/geglu/reference.h"

namespace isobit::cli {
namespace {

void require(isobit_status status) {
  if (status != ISOBIT_OK) throw std::runtime_error(isobit_last_error());
}

void store(isobit_dtype dtype, float value, unsigned char* to) {
  if (dtype == ISOBIT_FP32) {
    std::memcpy(to, &value, 4);
    return;
  }
  const uint16_t bits = dtype == ISOBIT_BF16 ? bf16_from_float(value) : fp16_from_float(value);
  std::memcpy(to, &bits, 2);
}

float load(isobit_dtype dtype, const char* from) {
  if (dtype == ISOBIT_FP32) {
    float value = 0;
    std::memcpy(&value, from, 4);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from, 2);
  return dtype == ISOBIT_BF16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

// The rows of one tensor in a buffer, in elements.
struct Strided {
  int64_t at, row_stride, step;
};

// The two tensors of a pair in one buffer of `end` elements.
struct PairPlan {
  Strided first, second;
  int64_t end;
};

PairPlan plan_pair(GegluArrangement arrangement, int64_t columns, const GegluCall& call) {
  const bool apart = arrangement == GegluArrangement::kSeparate;
  const int64_t row_stride = (apart ? columns : 2 * columns) + call.gap;
  const int64_t all = call.rows * row_stride;
  const int64_t step = arrangement == GegluArrangement::kInterleaved ? 2 : 1;
  const int64_t distance = apart ? all : step == 2 ? 1 : columns;
  PairPlan plan = {{call.offset, row_stride, step}, {call.offset + distance, row_stride, step}, call.offset + all};
  if (apart) plan.end += all;
  if (call.swapped) std::swap(plan.first, plan.second);
  return plan;
}

// Memory of one dtype on a place; A5 in every byte that nobody wrote.
class Elements {
 public:
  Elements(Place place, isobit_dtype dtype, int64_t count)
      : dtype_(dtype), size_(dtype_bytes(dtype)), buffer_(place, bytes_of(count)) {
    buffer_.fill(0xA5);
  }
  isobit_tensor view(const Strided& rows, int64_t count, int64_t columns) const {
    const Place place = buffer_.place();
    return {static_cast<char*>(buffer_.data()) + rows.at * size_,
            dtype_,
            place.type,
            place.id,
            2,
            {count, columns},
            {rows.row_stride, rows.step}};
  }
  void put(const Strided& rows, const std::vector<float>& values, int64_t first, int64_t count, int64_t columns) {
    std::vector<unsigned char> bytes(buffer_.bytes());
    buffer_.download(bytes.data(), bytes.size());
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t i = 0; i < columns; ++i) {
        const float value = values[static_cast<size_t>((first + row) * columns + i)];
        store(dtype_, value, bytes.data() + (rows.at + row * rows.row_stride + i * rows.step) * size_);
      }
    }
    buffer_.upload(bytes.data(), bytes.size());
  }
  // Appends the elements of each row to its string.
  void append(const Strided& rows, int64_t columns, std::vector<std::string>* out) const {
    std::vector<char> bytes(buffer_.bytes());
    buffer_.download(bytes.data(), bytes.size());
    for (size_t row = 0; row < out->size(); ++row) {
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t at = rows.at + static_cast<int64_t>(row) * rows.row_stride + i * rows.step;
        (*out)[row].append(bytes.data() + at * size_, static_cast<size_t>(size_));
      }
    }
  }

 private:
  size_t bytes_of(int64_t count) const { return static_cast<size_t>(std::max<int64_t>(count, 1) * size_); }
  isobit_dtype dtype_;
  int64_t size_;
  Buffer buffer_;
};

std::vector<float> random_elements(isobit_dtype dtype, int64_t rows, int64_t columns, uint64_t seed, float scale) {
  Array array({ISOBIT_CPU, 0}, dtype, {rows, columns});
  array.fill_random(seed, scale);
  return array.download_floats();
}

// Distance of neighbours of the dtype at a value.
double unit_at(isobit_dtype dtype, double value) {
  const int digits = dtype == ISOBIT_BF16 ? 7 : dtype == ISOBIT_FP16 ? 10 : 23;
  const int least = dtype == ISOBIT_FP16 ? -14 : -126;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - digits);
}

}  // namespace

GegluCase::GegluCase(const Kernel& kernel, Place place, int64_t rows, int64_t columns, isobit_dtype dtype,
                     isobit_gelu gelu, uint64_t seed)
    : kernel_(kernel.name),
      place_(place),
      rows_(rows),
      columns_(columns),
      dtype_(dtype),
      gelu_(gelu),
      gate_(random_elements(dtype, rows, columns, 3 * seed, 2.0f)),
      up_(random_elements(dtype, rows, columns, 3 * seed + 1, 1.0f)),
      d_out_(random_elements(dtype, rows, columns, 3 * seed + 2, 1.0f)) {}

std::vector<std::string> GegluCase::run(const GegluCall& call) const {
  const PairPlan inputs = plan_pair(call.inputs, columns_, call);
  const PairPlan gradients = call.in_place ? inputs : plan_pair(call.gradients, columns_, call);
  const Strided single = {call.offset, columns_ + call.gap, 1};
  const int64_t single_end = call.offset + call.rows * single.row_stride;
  Elements pair(place_, dtype_, inputs.end), out(place_, dtype_, single_end), d_out(place_, dtype_, single_end);
  pair.put(inputs.first, gate_, call.first_row, call.rows, columns_);
  pair.put(inputs.second, up_, call.first_row, call.rows, columns_);
  d_out.put(single, d_out_, call.first_row, call.rows, columns_);
  std::vector<std::string> rows(static_cast<size_t>(call.rows));

  isobit_geglu_forward_args forward = ISOBIT_GEGLU_FORWARD_ARGS_INIT;
  forward.kernel = kernel_.c_str();
  forward.threads = call.threads;
  forward.gelu = gelu_;
  forward.gate = pair.view(inputs.first, call.rows, columns_);
  forward.up = pair.view(inputs.second, call.rows, columns_);
  forward.out = out.view(single, call.rows, columns_);
  require(isobit_geglu_forward(&forward, nullptr));
  synchronise(place_);
  out.append(single, columns_, &rows);

  const Elements apart(place_, dtype_, call.in_place ? 0 : gradients.end);
  const Elements& written = call.in_place ? pair : apart;
  isobit_geglu_backward_args backward = ISOBIT_GEGLU_BACKWARD_ARGS_INIT;
  backward.kernel = kernel_.c_str();
  backward.threads = call.threads;
  backward.gelu = gelu_;
  backward.in_place = call.in_place ? 1 : 0;
  backward.gate = forward.gate;
  backward.up = forward.up;
  backward.d_out = d_out.view(single, call.rows, columns_);
  backward.d_gate = written.view(gradients.first, call.rows, columns_);
  backward.d_up = written.view(gradients.second, call.rows, columns_);
  require(isobit_geglu_backward(&backward, nullptr));
  synchronise(place_);
  written.append(gradients.first, columns_, &rows);
  written.append(gradients.second, columns_, &rows);
  return rows;
}

// The operator's page has the largest errors in units of the result, 0.505, 0.537 and 8.9 of the three dtypes; fp32
// gets one more for the product. The slope's own error is absolute.
double GegluCase::worst_error(int64_t row, const std::string& bytes) const {
  const double units = dtype_ == ISOBIT_BF16 ? 0.51 : dtype_ == ISOBIT_FP16 ? 0.54 : 10;
  constexpr double kSlopeError = 4e-7;
  const auto form = static_cast<numerics::Gelu>(gelu_);
  const auto size = static_cast<size_t>(dtype_bytes(dtype_));
  const auto columns = static_cast<size_t>(columns_);
  double worst = 0;
  for (size_t i = 0; i < columns; ++i) {
    const size_t at = static_cast<size_t>(row) * columns + i;
    const double a = static_cast<double>(gate_[at]);
    const double b = static_cast<double>(up_[at]);
    const double d = static_cast<double>(d_out_[at]);
    const double value = geglu::reference_gelu(form, a);
    const double expected[] = {value * b, d * b * geglu::reference_slope(form, a), d * value};
    const double slack[] = {0, kSlopeError * std::fabs(d * b), 0};
    for (size_t k = 0; k < 3; ++k) {
      const double got = static_cast<double>(load(dtype_, bytes.data() + (k * columns + i) * size));
      const double error = std::fabs(got - expected[k]) / (units * unit_at(dtype_, expected[k]) + slack[k]);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  }
  return worst;
}

}  // namespace isobit::cli
