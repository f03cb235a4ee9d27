#include "ops/nvfp4_geglu/test/problem.h"

#include "numerics/gelu.h"
#include "numerics/hopper_mma.h"
#include "numerics/nvfp4_block.h"

namespace isobit::nvfp4_geglu::test {

Problem::Problem(const Shape& shape, uint64_t seed)
    : x(&arena, {shape.rows, shape.k, shape.x_layout, shape.padding, shape.offset}),
      weight(&arena, {2 * shape.width, shape.k, shape.weight_layout, shape.padding, shape.offset}),
      out(&arena, {shape.rows, shape.width, shape.out_layout, shape.padding, shape.offset}),
      shape_(shape),
      x_scale_{shape.x_scale},
      gate_scale_{shape.gate_scale},
      up_scale_{shape.up_scale},
      out_scale_{shape.out_scale} {
  isobit::test::Random random(seed);
  x.fill(&random, shape.values);
  weight.fill(&random, shape.values);
  if (shape.device_scales) {
    for (isobit::test::GlobalScale* scale : {&x_scale_, &gate_scale_, &up_scale_, &out_scale_}) {
      *scale = isobit::test::device_scale(&arena, scale->value);
    }
  }
  out.mark_output();
  arena.seal();
}

isobit_nvfp4_geglu_args Problem::args(void* base, Device device) const {
  isobit_nvfp4_geglu_args args = ISOBIT_NVFP4_GEGLU_ARGS_INIT;
  args.x = x.view(base, device);
  args.weight = weight.view(base, device);
  args.x_scale = x_scale_.view(base, device);
  args.gate_scale = gate_scale_.view(base, device);
  args.up_scale = up_scale_.view(base, device);
  args.out_scale = out_scale_.view(base, device);
  args.out = out.view(base, device);
  args.gelu = shape_.gelu;
  return args;
}

isobit_status Problem::run_cpu(int threads, bool minimum_workspace) {
  arena.poison_outputs();
  return isobit::test::run_on_cpu(kCalls, args(), threads, minimum_workspace);
}

std::string Problem::out_bytes() const {
  std::string bytes;
  for (int64_t row = 0; row < shape_.rows; ++row) bytes += out.row_bytes(row);
  return bytes;
}

std::string Problem::out_block(int64_t row, int64_t block) const {
  const std::string bytes = out.row_bytes(row);
  return bytes.substr(static_cast<size_t>(block * 8), 8) + bytes[static_cast<size_t>(shape_.width / 2 + block)];
}

std::string Problem::model_block(int64_t row, int64_t block) const {
  using namespace numerics;
  const std::vector<uint16_t> a = x.bf16(), b = weight.bf16();
  const auto sum = [&](int64_t weight_row) {
    return hopper_dot<Bf16>(a.data() + row * shape_.k, b.data() + weight_row * shape_.k, shape_.k);
  };
  float hidden[16];
  for (int64_t i = 0; i < 16; ++i) {
    const float gate = sum(2 * (block * 16 + i)) * (shape_.x_scale * shape_.gate_scale);
    const float activated = shape_.gelu == ISOBIT_GELU_TANH ? gelu<Gelu::kTanh, GeluSequence::kCoarse>(gate)
                                                            : gelu<Gelu::kErf, GeluSequence::kCoarse>(gate);
    hidden[i] = activated * sum(2 * (block * 16 + i) + 1);
  }
  uint32_t codes[2];
  const uint8_t scale =
      nvfp4_encode(nvfp4_encoder(shape_.out_scale * (shape_.x_scale * shape_.up_scale)), hidden, codes);
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(codes[i / 4] >> (8 * (i % 4))));
  bytes.push_back(static_cast<char>(scale));
  return bytes;
}

}  // namespace isobit::nvfp4_geglu::test
