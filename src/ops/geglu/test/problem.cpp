#include "ops/geglu/test/problem.h"

#include <cstdio>
#include <cstring>
#include <random>

#include "numerics/bf16.h"
#include "numerics/fp16.h"

namespace isobit::geglu::test {
namespace {

constexpr size_t kAlignment = 256;
constexpr std::byte kFill{0xA5};

std::vector<uint32_t> draw(isobit_dtype dtype, Values values, size_t count, float scale, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<uint32_t> drawn(count);
  const uint32_t mask = dtype == ISOBIT_FP32 ? 0xFFFFFFFFu : 0xFFFFu;
  for (size_t i = 0; i < count; ++i) {
    switch (values) {
      case Values::kNormal:
        drawn[i] = bits_of(dtype, normal(engine));
        break;
      case Values::kPatterns:
        drawn[i] = static_cast<uint32_t>(engine()) & mask;
        break;
      case Values::kEveryHalf:
        drawn[i] = scale > 1.0f ? static_cast<uint32_t>(i) & 0xFFFFu : bits_of(dtype, 1.0f);
    }
  }
  return drawn;
}

}  // namespace

Problem::Problem(isobit_dtype dtype, const Shape& shape, Values values, uint64_t seed) {
  dtype_ = dtype;
  shape_ = shape;
  size_ = static_cast<size_t>(dtype_bytes(dtype));
  const auto count = static_cast<size_t>(shape.rows * shape.columns);
  a_ = draw(dtype, values, count, 2.0f, seed);
  b_ = draw(dtype, values, count, 1.0f, seed + 1);
  d_ = draw(dtype, values, count, 1.0f, seed + 2);
  place_pair(shape.inputs, &gate_, &up_);
  out_ = place(shape.columns);
  d_out_ = place(shape.columns);
  if (shape.in_place) {
    d_gate_ = gate_;
    d_up_ = up_;
  } else {
    place_pair(shape.gradients, &d_gate_, &d_up_);
  }
  arena.resize(used_ + kAlignment);
  reset();
}

Problem::Place Problem::place(int64_t row_elements) {
  used_ = (used_ + kAlignment - 1) / kAlignment * kAlignment;
  const int64_t stride = row_elements + shape_.padding;
  const Place at = {used_ + static_cast<size_t>(shape_.misalignment) * size_, stride, 1};
  used_ = at.begin + static_cast<size_t>(stride * shape_.rows) * size_;
  return at;
}

void Problem::place_pair(Arrangement arrangement, Place* first, Place* second) {
  if (shape_.swapped) std::swap(first, second);
  if (arrangement == Arrangement::kSeparate) {
    *first = place(shape_.columns);
    *second = place(shape_.columns);
    return;
  }
  *first = *second = place(2 * shape_.columns);
  const bool stacked = arrangement == Arrangement::kStacked;
  second->begin += static_cast<size_t>(stacked ? shape_.columns : 1) * size_;
  first->step = second->step = stacked ? 1 : 2;
}

isobit_tensor Problem::tensor(const Place& at, void* base, Device device) const {
  isobit_tensor t = {};
  t.data = static_cast<std::byte*>(base) + at.begin;
  t.dtype = dtype_;
  t.device_type = device.type;
  t.device_id = device.id;
  t.rank = 2;
  t.shape[0] = shape_.rows;
  t.shape[1] = shape_.columns;
  t.stride[0] = at.row_stride;
  t.stride[1] = at.step;
  return t;
}

isobit_geglu_forward_args Problem::forward(void* base, Device device, isobit_gelu gelu) const {
  isobit_geglu_forward_args args = {};
  args.struct_size = sizeof args;
  args.gate = tensor(gate_, base, device);
  args.up = tensor(up_, base, device);
  args.out = tensor(out_, base, device);
  args.gelu = gelu;
  return args;
}

isobit_geglu_backward_args Problem::backward(void* base, Device device, isobit_gelu gelu) const {
  isobit_geglu_backward_args args = {};
  args.struct_size = sizeof args;
  args.gate = tensor(gate_, base, device);
  args.up = tensor(up_, base, device);
  args.d_out = tensor(d_out_, base, device);
  args.d_gate = tensor(d_gate_, base, device);
  args.d_up = tensor(d_up_, base, device);
  args.gelu = gelu;
  args.in_place = shape_.in_place ? 1 : 0;
  return args;
}

void Problem::write(const Place& at, const std::vector<uint32_t>& values) {
  for (int64_t r = 0; r < shape_.rows; ++r) {
    for (int64_t c = 0; c < shape_.columns; ++c) {
      const auto index = static_cast<size_t>(r * at.row_stride + c * at.step);
      std::memcpy(arena.data() + at.begin + index * size_, &values[static_cast<size_t>(r * shape_.columns + c)], size_);
    }
  }
}

std::vector<uint32_t> Problem::bits(const Place& at) const {
  std::vector<uint32_t> values(a_.size());
  for (int64_t r = 0; r < shape_.rows; ++r) {
    for (int64_t c = 0; c < shape_.columns; ++c) {
      const auto index = static_cast<size_t>(r * at.row_stride + c * at.step);
      std::memcpy(&values[static_cast<size_t>(r * shape_.columns + c)], arena.data() + at.begin + index * size_, size_);
    }
  }
  return values;
}

void Problem::reset() {
  std::fill(arena.begin(), arena.end(), kFill);
  write(gate_, a_);
  write(up_, b_);
  write(d_out_, d_);
}

std::string Problem::stray_write(bool backward_outputs) const {
  Problem fresh = *this;
  fresh.reset();
  if (backward_outputs) {
    fresh.write(d_gate_, d_gate());
    fresh.write(d_up_, d_up());
  } else {
    fresh.write(out_, out());
  }
  for (size_t i = 0; i < arena.size(); ++i) {
    if (arena[i] == fresh.arena[i]) continue;
    return "byte " + std::to_string(i) + " of the arena was written";
  }
  return "";
}

std::vector<CoupleCase> couple_cases(int64_t rows, int64_t columns) {
  constexpr Arrangement kSeparate = Arrangement::kSeparate;
  constexpr Arrangement kInterleaved = Arrangement::kInterleaved;
  std::vector<CoupleCase> cases;
  for (const auto& [inputs, gradients] : {std::pair(kInterleaved, kInterleaved), std::pair(kInterleaved, kSeparate),
                                          std::pair(kSeparate, kInterleaved)}) {
    for (const bool swapped : {false, true}) {
      for (const bool round_gelu : {false, true}) {
        Shape shape = {.rows = rows, .columns = columns, .inputs = inputs, .gradients = gradients};
        shape.swapped = swapped;
        shape.in_place = inputs == gradients && !swapped;
        cases.push_back({shape, round_gelu});
      }
    }
  }
  return cases;
}

double value_of(isobit_dtype dtype, uint32_t bits) {
  switch (dtype) {
    case ISOBIT_BF16:
      return numerics::bf16_to_float(static_cast<uint16_t>(bits));
    case ISOBIT_FP16:
      return numerics::fp16_to_float(static_cast<uint16_t>(bits));
    default:
      return numerics::bits_float(bits);
  }
}

uint32_t bits_of(isobit_dtype dtype, float value) {
  switch (dtype) {
    case ISOBIT_BF16:
      return numerics::bf16_from_float(value);
    case ISOBIT_FP16:
      return numerics::fp16_from_float(value);
    default:
      return numerics::float_bits(value);
  }
}

std::string first_difference(isobit_dtype dtype, const std::vector<uint32_t>& got,
                             const std::vector<uint32_t>& wanted) {
  if (got.size() != wanted.size()) return "lists of different length";
  size_t count = 0;
  size_t first = 0;
  for (size_t i = got.size(); i-- > 0;) {
    if (got[i] == wanted[i]) continue;
    ++count;
    first = i;
  }
  if (count == 0) return "";
  char text[160];
  std::snprintf(text, sizeof text, "%zu of %zu differ, first at %zu: got %.9g (%08X), wanted %.9g (%08X)", count,
                got.size(), first, value_of(dtype, got[first]), got[first], value_of(dtype, wanted[first]),
                wanted[first]);
  return text;
}

}  // namespace isobit::geglu::test
