// Packing of small checkpoints of every known spelling.
#include <algorithm>

#include "pack/tag.h"
#include "pack/test/fixture.h"

namespace isobit::cli {
namespace {

// Gate and up of very different size keep scales of their own.
TEST_F(Pack, GateAndUpAreInterleavedWithTheirOwnScales) {
  constexpr size_t kI = 48, kH = 64;
  const auto gate = normal(kI * kH, 1, 1), up = normal(kI * kH, 100, 2), down = normal(kI * kH, 0.1f, 3);
  Tensors tensors;
  tensors.add("model.layers.0.mlp.gate_proj.weight", kI, kH, gate);
  tensors.add("model.layers.0.mlp.up_proj.weight", kI, kH, up);
  tensors.add("model.layers.0.mlp.down_proj.weight", kH, kI, down);
  tensors.write(input());
  for (const isobit_nvfp4_layout layout : {ISOBIT_NVFP4_LINEAR, ISOBIT_NVFP4_128X4, ISOBIT_NVFP4_8X4}) {
    const checkpoint::Status status = run(input(), "tanh", layout);
    ASSERT_TRUE(status.ok()) << status.message;
    const std::string name = "model.layers.0.mlp";
    const auto merged = decoded(name + ".gate_up", {name + ".gate_up.gate_scale", name + ".gate_up.up_scale"}, layout);
    EXPECT_LT(relative_error(half(merged, kH, 0), gate), 0.11);
    EXPECT_LT(relative_error(half(merged, kH, 1), up), 0.11);
    EXPECT_LT(relative_error(decoded(name + ".down", {name + ".down.scale"}, layout), down), 0.11);
  }
  ASSERT_EQ(reports_.size(), 9u);
  EXPECT_NEAR(
      reports_[0].relative_l2,
      relative_error(half(decoded("model.layers.0.mlp.gate_up",
                                  {"model.layers.0.mlp.gate_up.gate_scale", "model.layers.0.mlp.gate_up.up_scale"},
                                  ISOBIT_NVFP4_8X4),
                          kH, 0),
                     gate),
      1e-4);
  EXPECT_GT(reports_[0].cosine, 0.99);
  EXPECT_EQ(reports_[0].saturated, 0);
  EXPECT_EQ(reports_[0].flushed, 0);
  const auto tag = read_tag(output());
  ASSERT_TRUE(tag.ok()) << tag.status().message;
  EXPECT_EQ(tag->at("isobit.layout"), "8x4");
}

// I = 40: padding behind [gate; up] would shift the border of the halves.
TEST_F(Pack, GateAndUpArePaddedApart) {
  constexpr size_t kI = 40, kH = 32;
  const auto gate = normal(kI * kH, 1, 1), up = normal(kI * kH, 1, 2), down = normal(kI * kH, 1, 3);
  Tensors tensors;
  tensors.add("enc.DenseReluDense.wi_0.weight", kI, kH, gate);
  tensors.add("enc.DenseReluDense.wi_1.weight", kI, kH, up);
  tensors.add("enc.DenseReluDense.wo.weight", kH, kI, down);
  tensors.write(input());
  ASSERT_TRUE(run(input()).ok());
  const auto merged = decoded("enc.gate_up", {"enc.gate_up.gate_scale", "enc.gate_up.up_scale"});
  ASSERT_EQ(merged.size(), 96u * kH);
  EXPECT_LT(relative_error(half(merged, kH, 0), gate), 0.11);
  EXPECT_LT(relative_error(half(merged, kH, 1), up), 0.11);
  EXPECT_TRUE(std::all_of(merged.begin() + 80 * kH, merged.end(), [](double value) { return value == 0; }));
  const auto packed_down = decoded("enc.down", {"enc.down.scale"});
  ASSERT_EQ(packed_down.size(), kH * 48u);
  for (size_t row = 0; row < kH; ++row) {
    for (size_t column = kI; column < 48; ++column) EXPECT_EQ(packed_down[row * 48 + column], 0);
  }
}

// openpi's JAX stack [L, 2, H, I] is transposed and split.
TEST_F(Pack, StacksAreTransposed) {
  constexpr size_t kL = 2, kI = 16, kH = 32;
  const auto gating = normal(kL * 2 * kH * kI, 1, 1), linear = normal(kL * kI * kH, 1, 2);
  Tensors tensors;
  tensors.add("PaliGemma/llm/layers/mlp/gating_einsum", Dtype::kF32, {kL, 2, kH, kI}, gating);
  tensors.add("PaliGemma/llm/layers/mlp/linear", Dtype::kF32, {kL, kI, kH}, linear);
  tensors.write(input());
  ASSERT_TRUE(run(input(), "").ok());
  const std::string name = "PaliGemma/llm/layers/mlp.1";
  const auto merged = decoded(name + ".gate_up", {name + ".gate_up.gate_scale", name + ".gate_up.up_scale"});
  std::vector<float> up(kI * kH);
  for (size_t i = 0; i < kI; ++i) {
    for (size_t h = 0; h < kH; ++h) up[i * kH + h] = gating[((1 * 2 + 1) * kH + h) * kI + i];
  }
  EXPECT_LT(relative_error(half(merged, kH, 1), up), 0.11);
  std::vector<float> down(kH * kI);
  for (size_t h = 0; h < kH; ++h) {
    for (size_t i = 0; i < kI; ++i) down[h * kI + i] = linear[(1 * kI + i) * kH + h];
  }
  EXPECT_LT(relative_error(decoded(name + ".down", {name + ".down.scale"}), down), 0.11);
}

// Codes and scales of ModelOpt (decode scale) and of compressed-tensors (its reciprocal) are taken over as they are.
TEST_F(Pack, QuantizedCheckpointsAreTakenOver) {
  constexpr size_t kI = 16, kH = 32;
  for (const bool reciprocal : {false, true}) {
    Tensors tensors;
    std::vector<uint8_t> gate_codes(kI * kH / 2);
    for (size_t i = 0; i < gate_codes.size(); ++i) gate_codes[i] = static_cast<uint8_t>(7 * i + 1);
    float scale = 1;
    for (const char* const part : {"gate", "up", "down"}) {
      const bool is_down = part == std::string("down");
      const uint64_t rows = is_down ? kH : kI, columns = is_down ? kI : kH;
      const std::string name = "model.layers.0.mlp." + std::string(part) + "_proj";
      tensors.add(name + (reciprocal ? ".weight_packed" : ".weight"), Dtype::kU8, {rows, columns / 2}, gate_codes);
      tensors.add(name + ".weight_scale", Dtype::kF8E4M3, {rows, columns / 16},
                  std::vector<uint8_t>(kI * kH / 16, 0x38));
      scale *= 2;
      tensors.add(name + (reciprocal ? ".weight_global_scale" : ".weight_scale_2"), Dtype::kF32, {1},
                  std::vector<float>{reciprocal ? 1 / scale : scale});
    }
    tensors.write(input());
    const checkpoint::Status status = run(input());
    ASSERT_TRUE(status.ok()) << status.message;
    const std::string name = "model.layers.0.mlp.gate_up";
    const auto merged = decoded(name, {name + ".gate_scale", name + ".up_scale"});
    for (size_t i = 0; i < 2 * kI * kH; ++i) {
      const size_t row = i / kH, at = row / 2 * kH + i % kH;
      const auto code = static_cast<uint8_t>(gate_codes[at / 2] >> (at % 2 * 4) & 15);
      EXPECT_EQ(merged[i], static_cast<double>(numerics::e2m1_to_float(code)) * (row % 2 == 0 ? 2 : 4));
    }
  }
}

}  // namespace
}  // namespace isobit::cli
