#include "ops/nvfp4_linear/test/problem.h"

#include <cstring>
#include <memory>

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
  isobit_nvfp4_linear_args call = args();
  call.threads = threads;
  size_t minimum = 0, recommended = 0;
  if (const isobit_status s = isobit_nvfp4_linear_workspace(&call, &minimum, &recommended); s != ISOBIT_OK) return s;
  call.workspace_bytes = minimum_workspace ? minimum : recommended;
  const std::unique_ptr<std::byte[]> memory(new std::byte[call.workspace_bytes + 512]);
  std::memset(memory.get(), 0xA7, call.workspace_bytes + 512);
  call.workspace = memory.get() + (256 - reinterpret_cast<uintptr_t>(memory.get()) % 256);
  const isobit_status status = isobit_nvfp4_linear(&call, nullptr);
  const std::byte* const end = static_cast<std::byte*>(call.workspace) + call.workspace_bytes;
  for (const std::byte* guard = end; guard < memory.get() + call.workspace_bytes + 512; ++guard) {
    if (*guard != isobit::test::Arena::kPoison) return ISOBIT_INTERNAL_ERROR;
  }
  return status;
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
