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

// Gemma's JAX checkpoints hold a layer each, inputs first in the older ones and outputs first in the newer ones.
TEST_F(Pack, GatingOfOneLayerInEitherOrder) {
  constexpr size_t kI = 16, kH = 32;
  const auto gate = normal(kI * kH, 1, 1), up = normal(kI * kH, 1, 2), linear = normal(kI * kH, 1, 3);
  for (const bool inputs_first : {true, false}) {
    std::vector<float> gating;
    for (const auto* half_of : {&gate, &up}) {
      for (size_t i = 0; i < kI * kH; ++i) {
        gating.push_back(inputs_first ? (*half_of)[i % kI * kH + i / kI] : (*half_of)[i]);
      }
    }
    Tensors tensors;
    const std::vector<uint64_t> shape =
        inputs_first ? std::vector<uint64_t>{2, kH, kI} : std::vector<uint64_t>{2, kI, kH};
    tensors.add("transformer/layer_3/mlp/gating_einsum", Dtype::kF32, shape, gating);
    tensors.add("transformer/layer_3/mlp/linear", kI, kH, linear);
    tensors.write(input());
    const checkpoint::Status status = run(input(), "");
    ASSERT_TRUE(status.ok()) << status.message;
    const std::string name = "transformer/layer_3/mlp";
    const auto merged = decoded(name + ".gate_up", {name + ".gate_up.gate_scale", name + ".gate_up.up_scale"});
    EXPECT_LT(relative_error(half(merged, kH, 0), gate), 0.11);
    EXPECT_LT(relative_error(half(merged, kH, 1), up), 0.11);
    std::vector<float> down(kH * kI);
    for (size_t i = 0; i < kH * kI; ++i) down[i] = linear[i % kI * kH + i / kI];
    EXPECT_LT(relative_error(decoded(name + ".down", {name + ".down.scale"}), down), 0.11);
  }
}

// The factors leave the product as it was: columns of gate and up over input_scale, rows of up and columns of down.
TEST_F(Pack, PrescaleIsFoldedIntoTheWeights) {
  constexpr size_t kI = 32, kH = 64;
  const auto gate = normal(kI * kH, 1, 1), up = normal(kI * kH, 1, 2), down = normal(kI * kH, 1, 3);
  std::vector<float> input_means(kH), hidden_means(kI);
  for (size_t h = 0; h < kH; ++h) input_means[h] = std::ldexp(1.0f, static_cast<int>(h % 7) * 2);
  for (size_t i = 0; i < kI; ++i) hidden_means[i] = i == 5 ? 0.0f : std::ldexp(1.0f, -2 * static_cast<int>(i % 5));
  Tensors tensors, statistics;
  tensors.add("a.mlp.gate_proj.weight", kI, kH, gate);
  tensors.add("a.mlp.up_proj.weight", kI, kH, up);
  tensors.add("a.mlp.down_proj.weight", kH, kI, down);
  tensors.write(input());
  activations_ = folder_.path() + "/statistics.safetensors";
  statistics.add("a.mlp.input", Dtype::kF32, {kH}, input_means);
  statistics.add("a.mlp.hidden", Dtype::kF32, {kI}, hidden_means);
  statistics.write(activations_);
  const checkpoint::Status status = run(input());
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(read_tag(output())->at("isobit.prescale"), "x times input_scale");
  auto file = Checkpoint::open(output());
  std::vector<float> input_scale(kH);
  const auto tensor = file->find("a.mlp.gate_up.input_scale");
  ASSERT_TRUE(tensor.ok());
  std::memcpy(input_scale.data(), tensor->bytes.data(), tensor->bytes.size());
  // Means of 1 to 2^12, alpha 1/2: factors 2^-3 to 2^3.
  EXPECT_EQ(input_scale[0], 8.0f);
  EXPECT_EQ(input_scale[6], 0.125f);
  std::vector<float> scaled_gate = gate, scaled_up = up, scaled_down = down;
  const auto hidden_factor = [&](size_t i) { return std::ldexp(1.0f, 2 - static_cast<int>(i == 5 ? 4 : i % 5)); };
  for (size_t i = 0; i < kI; ++i) {
    for (size_t h = 0; h < kH; ++h) {
      scaled_gate[i * kH + h] /= input_scale[h];
      scaled_up[i * kH + h] /= input_scale[h] * hidden_factor(i);
      scaled_down[h * kI + i] *= hidden_factor(i);
    }
  }
  const auto merged = decoded("a.mlp.gate_up", {"a.mlp.gate_up.gate_scale", "a.mlp.gate_up.up_scale"});
  EXPECT_LT(relative_error(half(merged, kH, 0), scaled_gate), 0.11);
  EXPECT_LT(relative_error(half(merged, kH, 1), scaled_up), 0.11);
  EXPECT_LT(relative_error(decoded("a.mlp.down", {"a.mlp.down.scale"}), scaled_down), 0.11);
  statistics.all[1].shape = {kI / 2};
  statistics.all[1].bytes.resize(kI / 2 * sizeof(float));
  statistics.write(activations_);
  EXPECT_NE(run(input()).message.find("F32 [32]"), std::string::npos);
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
