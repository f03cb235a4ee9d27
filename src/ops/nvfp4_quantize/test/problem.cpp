#include "ops/nvfp4_quantize/test/problem.h"

#include <cmath>
#include <cstring>

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "numerics/scale_layout.h"
#include "ops/nvfp4_quantize/reference.h"

namespace isobit::nvfp4_quantize::test {
namespace {

constexpr size_t kGuard = 256;
constexpr std::byte kPoison{0xA7};

float round_to(isobit_dtype dtype, float x) {
  switch (dtype) {
    case ISOBIT_BF16:
      return numerics::bf16_to_float(numerics::bf16_from_float(x));
    case ISOBIT_FP16:
      return numerics::fp16_to_float(numerics::fp16_from_float(x));
    default:
      return x;
  }
}

// Any value of the dtype.
float pattern(isobit_dtype dtype, uint32_t bits) {
  switch (dtype) {
    case ISOBIT_BF16:
      return numerics::bf16_to_float(static_cast<uint16_t>(bits));
    case ISOBIT_FP16:
      return numerics::fp16_to_float(static_cast<uint16_t>(bits));
    default:
      return numerics::bits_float(bits);
  }
}

void store(isobit_dtype dtype, float value, std::byte* to) {
  const uint16_t half = dtype == ISOBIT_BF16 ? numerics::bf16_from_float(value) : numerics::fp16_from_float(value);
  if (dtype == ISOBIT_FP32) {
    std::memcpy(to, &value, sizeof value);
  } else {
    std::memcpy(to, &half, sizeof half);
  }
}

}  // namespace

Problem::Problem(const Shape& shape, Values values, uint64_t seed) : shape_(shape) {
  Random random(seed);
  values_.resize(static_cast<size_t>(shape.rows * shape.k));
  int exponent = 0;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (i % 16 == 0) exponent = static_cast<int>(random.bits() % 31) - 20;
    values_[i] = values == Values::kPatterns && random.bits() % 8 != 0
                     ? pattern(shape.dtype, random.bits())
                     : round_to(shape.dtype, std::ldexp(random.normal(), exponent));
  }
  const auto element = static_cast<size_t>(dtype_bytes(shape.dtype));
  const auto layout = static_cast<numerics::ScaleLayout>(shape.layout);
  const auto rows = static_cast<size_t>(shape.rows);
  x_ = place(rows * static_cast<size_t>(shape.k + shape.padding) * element,
             static_cast<size_t>(shape.misalignment) * element);
  global_ = place(sizeof(float), 4);
  codes_ =
      place(rows * static_cast<size_t>(shape.k / 2 + shape.codes_padding), static_cast<size_t>(shape.codes_offset));
  scales_ = place(static_cast<size_t>(numerics::scale_buffer_size(layout, shape.rows, shape.k / 16)), 0);
  arena.resize(used_ + kGuard);
  reset();
}

Problem::Place Problem::place(size_t bytes, size_t offset) {
  const size_t begin = (used_ + kGuard + 255) / 256 * 256 + offset;
  used_ = begin + bytes;
  return {begin, bytes};
}

void Problem::set_x(int64_t row, int64_t column, float value) {
  values_[static_cast<size_t>(row * shape_.k + column)] = round_to(shape_.dtype, value);
}

void Problem::reset() {
  std::fill(arena.begin(), arena.end(), kPoison);
  const auto element = static_cast<size_t>(dtype_bytes(shape_.dtype));
  for (int64_t row = 0; row < shape_.rows; ++row) {
    for (int64_t column = 0; column < shape_.k; ++column) {
      const auto at = static_cast<size_t>(row * (shape_.k + shape_.padding) + column);
      store(shape_.dtype, x(row, column), arena.data() + x_.begin + at * element);
    }
  }
  std::memcpy(arena.data() + global_.begin, &shape_.global, sizeof(float));
}

isobit_nvfp4_quantize_args Problem::args(void* base, Device device) const {
  const auto view = [&](const Place& at, isobit_dtype dtype, int64_t columns, int64_t stride) {
    isobit_tensor tensor = {};
    tensor.data = static_cast<std::byte*>(base) + at.begin;
    tensor.dtype = dtype;
    tensor.device_type = device.type;
    tensor.device_id = device.id;
    tensor.rank = 2;
    tensor.shape[0] = shape_.rows;
    tensor.shape[1] = columns;
    tensor.stride[0] = stride;
    tensor.stride[1] = 1;
    return tensor;
  };
  isobit_nvfp4_quantize_args args = ISOBIT_NVFP4_QUANTIZE_ARGS_INIT;
  args.x = view(x_, shape_.dtype, shape_.k, shape_.k + shape_.padding);
  args.out.codes = view(codes_, ISOBIT_UINT8, shape_.k / 2, shape_.k / 2 + shape_.codes_padding);
  args.out.layout = shape_.layout;
  int64_t blocks = 0;
  args.out.scales = view(scales_, ISOBIT_UINT8, 0, 0);
  isobit_nvfp4_scales_shape(shape_.layout, shape_.rows, shape_.k, &args.out.scales.shape[0], &blocks);
  args.out.scales.shape[1] = args.out.scales.stride[0] = blocks;
  args.global_scale.value = shape_.global;
  if (shape_.device_global) {
    args.global_scale.tensor = view(global_, ISOBIT_FP32, 0, 0);
    args.global_scale.tensor.rank = 0;
    args.global_scale.value = 0.0f;
  }
  return args;
}

std::vector<uint8_t> Problem::codes() const {
  std::vector<uint8_t> out;
  const auto* const begin = reinterpret_cast<const uint8_t*>(arena.data() + codes_.begin);
  for (int64_t row = 0; row < shape_.rows; ++row) {
    const uint8_t* const from = begin + row * (shape_.k / 2 + shape_.codes_padding);
    out.insert(out.end(), from, from + shape_.k / 2);
  }
  return out;
}

uint8_t Problem::code(int64_t row, int64_t column) const {
  const int64_t at = row * (shape_.k / 2 + shape_.codes_padding) + column / 2;
  const auto pair = static_cast<uint8_t>(arena[codes_.begin + static_cast<size_t>(at)]);
  return column % 2 == 0 ? pair & 15 : pair >> 4;
}

uint8_t Problem::scale(int64_t row, int64_t block) const {
  const int64_t at =
      numerics::scale_offset(static_cast<numerics::ScaleLayout>(shape_.layout), row, block, shape_.k / 16);
  return static_cast<uint8_t>(arena[scales_.begin + static_cast<size_t>(at)]);
}

std::vector<uint8_t> Problem::scale_buffer() const {
  const auto* const begin = reinterpret_cast<const uint8_t*>(arena.data() + scales_.begin);
  return {begin, begin + scales_.bytes};
}

bool Problem::is_output(size_t at) const {
  if (at >= scales_.begin && at < scales_.begin + scales_.bytes) return true;
  if (at < codes_.begin || at >= codes_.begin + codes_.bytes) return false;
  return (at - codes_.begin) % static_cast<size_t>(shape_.k / 2 + shape_.codes_padding) <
         static_cast<size_t>(shape_.k / 2);
}

std::string Problem::stray_write() const {
  Problem fresh = *this;
  fresh.reset();
  for (size_t at = 0; at < arena.size(); ++at) {
    if (arena[at] != fresh.arena[at] && !is_output(at))
      return "byte " + std::to_string(at) + " of the arena was written";
  }
  return "";
}

std::string Problem::difference_from_reference() const {
  std::vector<bool> is_scale(scales_.bytes, false);
  const auto layout = static_cast<numerics::ScaleLayout>(shape_.layout);
  const auto text = [](const char* what, int64_t row, int64_t column, int got, int wanted) {
    return std::string(what) + " at (" + std::to_string(row) + ", " + std::to_string(column) + "): got " +
           std::to_string(got) + ", expected " + std::to_string(wanted);
  };
  for (int64_t row = 0; row < shape_.rows; ++row) {
    for (int64_t block = 0; block < shape_.k / 16; ++block) {
      float values[16];
      for (int i = 0; i < 16; ++i) values[i] = x(row, block * 16 + i);
      const ReferenceBlock wanted = reference_block(values, shape_.global);
      is_scale[static_cast<size_t>(numerics::scale_offset(layout, row, block, shape_.k / 16))] = true;
      if (scale(row, block) != wanted.scale) return text("scale", row, block, scale(row, block), wanted.scale);
      for (int i = 0; i < 16; ++i) {
        const uint8_t got = code(row, block * 16 + i);
        if (got != wanted.codes[i]) return text("code", row, block * 16 + i, got, wanted.codes[i]);
      }
    }
  }
  const std::vector<uint8_t> scales = scale_buffer();
  for (size_t i = 0; i < scales.size(); ++i) {
    if (!is_scale[i] && scales[i] != 0) return text("padding byte", 0, static_cast<int64_t>(i), scales[i], 0);
  }
  return "";
}

}  // namespace isobit::nvfp4_quantize::test
