// Packing of small checkpoints of every known spelling, and the refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/test/temporary_folder.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/scale_layout.h"
#include "pack/pack.h"
#include "pack/tag.h"

namespace isobit::cli {
namespace {

using checkpoint::Checkpoint;
using checkpoint::Dtype;

std::vector<float> normal(size_t count, float scale, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 32) * 0x1p-32;
    value = static_cast<float>(sum - 6) * scale;
  }
  return values;
}

// Tensors of a checkpoint to write.
struct Tensors {
  struct One {
    std::string name;
    Dtype dtype;
    std::vector<uint64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::vector<One> all;

  template <class T>
  void add(const std::string& name, Dtype dtype, std::vector<uint64_t> shape, const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    all.push_back({name, dtype, std::move(shape), std::move(bytes)});
  }
  void add(const std::string& name, uint64_t rows, uint64_t columns, const std::vector<float>& values) {
    add(name, Dtype::kF32, {rows, columns}, values);
  }
  void write(const std::string& path) const {
    std::vector<checkpoint::OutputTensor> out;
    for (const One& one : all) out.push_back({one.name, one.dtype, one.shape, one.bytes});
    const checkpoint::Status status = checkpoint::write_safetensors(path, out);
    ASSERT_TRUE(status.ok()) << status.message;
  }
};

class Pack : public testing::Test {
 protected:
  std::string input() const { return folder_.path() + "/in.safetensors"; }
  std::string output() const { return folder_.path() + "/out.safetensors"; }

  checkpoint::Status run(const std::string& from, const std::string& gelu = "tanh",
                         isobit_nvfp4_layout layout = ISOBIT_NVFP4_128X4) {
    const PackListener listener = {
        [&](const std::string&, const char*, const PackedMatrix& packed) { reports_.push_back(packed.report); },
        [](const std::string&, int64_t, int64_t) {}};
    return pack({from, output(), layout, gelu}, listener);
  }
  // A packed matrix of the output decoded, its rows times a scale of their own (two alternate).
  std::vector<double> decoded(const std::string& name, const std::vector<std::string>& scales,
                              isobit_nvfp4_layout layout = ISOBIT_NVFP4_128X4) {
    auto file = Checkpoint::open(output());
    EXPECT_TRUE(file.ok());
    auto codes = file->find(name + ".codes"), packed = file->find(name + ".scales");
    EXPECT_TRUE(codes.ok() && packed.ok());
    std::vector<float> global;
    for (const std::string& scale : scales) {
      auto tensor = file->find(scale);
      EXPECT_TRUE(tensor.ok());
      global.push_back(0);
      std::memcpy(&global.back(), tensor->bytes.data(), sizeof(float));
    }
    const auto rows = static_cast<int64_t>(codes->shape[0]), k = static_cast<int64_t>(2 * codes->shape[1]);
    std::vector<double> values;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < k; ++c) {
        const auto pair = static_cast<uint8_t>(codes->bytes[static_cast<size_t>((r * k + c) / 2)]);
        const int64_t at = numerics::scale_offset(static_cast<numerics::ScaleLayout>(layout), r, c / 16, k / 16);
        const auto scale = static_cast<uint8_t>(packed->bytes[static_cast<size_t>(at)]);
        values.push_back(static_cast<double>(numerics::e2m1_to_float(static_cast<uint8_t>(pair >> (c % 2 * 4) & 15))) *
                         static_cast<double>(numerics::e4m3_to_float(scale)) *
                         static_cast<double>(global[static_cast<size_t>(r) % global.size()]));
      }
    }
    return values;
  }

  checkpoint::TemporaryFolder folder_;
  std::vector<PackReport> reports_;
};

double relative_error(const std::vector<double>& got, const std::vector<float>& wanted) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto value = static_cast<double>(wanted[i]);
    error += (got[i] - value) * (got[i] - value);
    norm += value * value;
  }
  return std::sqrt(error / norm);
}

// Every second row, from `first` on.
std::vector<double> half(const std::vector<double>& rows, size_t columns, size_t first) {
  std::vector<double> out;
  for (size_t r = first; r < rows.size() / columns; r += 2) {
    out.insert(out.end(), rows.begin() + static_cast<int64_t>(r * columns),
               rows.begin() + static_cast<int64_t>((r + 1) * columns));
  }
  return out;
}

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

TEST_F(Pack, RefusesWhatIsNotGeglu) {
  Tensors tensors;
  const auto values = normal(32 * 32, 1, 1);
  tensors.add("model.layers.0.mlp.gate_proj.weight", 32, 32, values);
  tensors.add("model.layers.0.mlp.up_proj.weight", 32, 32, values);
  tensors.add("model.layers.0.mlp.down_proj.weight", 32, 32, values);
  tensors.write(folder_.path() + "/model.safetensors");
  const auto with_config = [&](const std::string& config, const std::string& gelu) {
    std::ofstream(folder_.path() + "/config.json") << config;
    return run(folder_.path(), gelu).message;
  };
  EXPECT_NE(
      with_config(R"({"model_type": "llama", "hidden_act": "silu"})", "tanh").find("\"llama\" with \"silu\" (SwiGLU)"),
      std::string::npos);
  EXPECT_NE(with_config(R"({"model_type": "olmo9", "hidden_act": "gelu"})", "").find("--gelu"), std::string::npos);
  EXPECT_NE(with_config(R"({"model_type": "gemma", "hidden_act": "gelu"})", "erf").find("tanh for this architecture"),
            std::string::npos);
  EXPECT_FALSE(std::ifstream(output()).good());
  // Gemma 1's config says gelu and means the tanh form.
  EXPECT_EQ(with_config(R"({"model_type": "gemma", "hidden_act": "gelu"})", ""), "");
  EXPECT_EQ(read_tag(output())->at("isobit.gelu"), "tanh");
}

TEST_F(Pack, RefusesPlainMlpsByName) {
  Tensors tensors;
  tensors.add("vision.mlp.fc1.weight", 32, 32, normal(32 * 32, 1, 1));
  tensors.write(input());
  EXPECT_NE(run(input()).message.find("the plain MLP \"vision.mlp.fc1.weight\""), std::string::npos);
}

TEST_F(Pack, RefusesMatricesThatDoNotFit) {
  Tensors tensors;
  tensors.add("a.mlp.gate_proj.weight", 32, 24, normal(32 * 24, 1, 1));
  tensors.add("a.mlp.up_proj.weight", 32, 24, normal(32 * 24, 1, 2));
  tensors.add("a.mlp.down_proj.weight", 24, 32, normal(32 * 24, 1, 3));
  tensors.write(input());
  EXPECT_NE(run(input()).message.find("a hidden size that is a multiple of 16"), std::string::npos);
  tensors.all[1].shape = {24, 32};
  tensors.write(input());
  EXPECT_NE(run(input()).message.find("[32, 24] like gate"), std::string::npos);
}

TEST_F(Pack, AZeroTensorHasScaleOneAndNanIsRefused) {
  Tensors tensors;
  std::vector<float> zeros(32 * 32);
  tensors.add("a.mlp.gate_proj.weight", 32, 32, zeros);
  tensors.add("a.mlp.up_proj.weight", 32, 32, zeros);
  tensors.add("a.mlp.down_proj.weight", 32, 32, zeros);
  tensors.write(input());
  ASSERT_TRUE(run(input()).ok());
  const auto merged = decoded("a.mlp.gate_up", {"a.mlp.gate_up.gate_scale"});
  EXPECT_TRUE(std::all_of(merged.begin(), merged.end(), [](double value) { return value == 0; }));
  zeros[5] = NAN;
  tensors.all.pop_back();
  tensors.add("a.mlp.down_proj.weight", 32, 32, zeros);
  tensors.write(input());
  EXPECT_NE(run(input()).message.find("finite values"), std::string::npos);
}

// A file that another program wrote, or a newer version, must not be read as if it were ours.
TEST_F(Pack, TagIsChecked) {
  Tensors tensors;
  tensors.add("a", 1, 1, std::vector<float>{1});
  tensors.write(input());
  EXPECT_NE(read_tag(input()).status().message.find("tag isobit."), std::string::npos);
  Tag tag = make_tag(ISOBIT_NVFP4_LINEAR, "tanh");
  tag["isobit.interleave"] = "gate, then up";
  const std::vector<std::byte> bytes(4);
  const checkpoint::OutputTensor one = {"a", Dtype::kF32, {1}, bytes};
  ASSERT_TRUE(checkpoint::write_safetensors(input(), std::span(&one, 1), tag).ok());
  EXPECT_NE(read_tag(input()).status().message.find("got \"gate, then up\""), std::string::npos);
}

}  // namespace
}  // namespace isobit::cli
