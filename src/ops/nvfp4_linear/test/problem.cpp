#include "ops/nvfp4_linear/test/problem.h"

#include <cstring>

#include "numerics/bf16.h"
#include "numerics/hopper_mma.h"

namespace isobit::nvfp4_linear::test {

Problem::Problem(const Shape& shape, uint64_t seed)
    : x(&arena, {shape.rows, shape.k, shape.x_layout, shape.padding, shape.offset}),
      weight(&arena, {shape.columns, shape.k, shape.weight_layout, shape.padding, shape.offset}),
      shape_(shape),
      x_scale_{shape.x_scale},
      weight_scale_{shape.weight_scale} {
  isobit::test::Random random(seed);
  x.fill(&random, shape.values);
  weight.fill(&random, shape.values);
  if (shape.device_scales) {
    x_scale_ = isobit::test::device_scale(&arena, shape.x_scale);
    weight_scale_ = isobit::test::device_scale(&arena, shape.weight_scale);
  }
  const auto element = static_cast<size_t>(dtype_bytes(shape.dtype));
  const auto stride = static_cast<size_t>(shape.columns + shape.padding) * element;
  out_ = arena.place(static_cast<size_t>(shape.rows) * stride, static_cast<size_t>(shape.out_offset) * element);
  for (int64_t row = 0; row < shape.rows; ++row) {
    arena.mark_output(out_ + static_cast<size_t>(row) * stride, static_cast<size_t>(shape.columns) * element);
  }
  arena.seal();
}

isobit_nvfp4_linear_args Problem::args(void* base, Device device) const {
  isobit_nvfp4_linear_args args = ISOBIT_NVFP4_LINEAR_ARGS_INIT;
  args.x = x.view(base, device);
  args.weight = weight.view(base, device);
  args.x_scale = x_scale_.view(base, device);
  args.weight_scale = weight_scale_.view(base, device);
  args.out = {
      static_cast<std::byte*>(base) + out_, shape_.dtype, device.type, device.id, 2, {shape_.rows, shape_.columns},
      {shape_.columns + shape_.padding, 1}};
  return args;
}

isobit_status Problem::run_cpu(int threads, bool minimum_workspace) {
  arena.poison_outputs();
  return isobit::test::run_on_cpu(kCalls, args(), threads, minimum_workspace);
}

uint32_t Problem::out(int64_t row, int64_t column) const {
  const auto element = static_cast<size_t>(dtype_bytes(shape_.dtype));
  const auto at = static_cast<size_t>(row * (shape_.columns + shape_.padding) + column);
  uint32_t bits = 0;
  std::memcpy(&bits, arena.bytes.data() + out_ + at * element, element);
  return bits;
}

std::vector<uint32_t> Problem::out() const {
  std::vector<uint32_t> bits;
  for (int64_t i = 0; i < shape_.rows * shape_.columns; ++i)
    bits.push_back(out(i / shape_.columns, i % shape_.columns));
  return bits;
}

uint32_t Problem::model(int64_t row, int64_t column) const {
  const std::vector<uint16_t> a = x.bf16(), b = weight.bf16();
  const float sum =
      numerics::hopper_dot<numerics::Bf16>(a.data() + row * shape_.k, b.data() + column * shape_.k, shape_.k);
  const float y = numerics::canonical_nan(sum * (shape_.x_scale * shape_.weight_scale));
  return shape_.dtype == ISOBIT_BF16 ? numerics::bf16_from_float(y) : numerics::float_bits(y);
}

}  // namespace isobit::nvfp4_linear::test
