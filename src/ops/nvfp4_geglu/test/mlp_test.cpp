// A whole MLP through the public calls, fused and staged: quantise, gate and up with GeGLU, down.
#include <gtest/gtest.h>

#include <cmath>
#include <isobit/isobit.hpp>
#include <random>
#include <string>
#include <vector>

namespace isobit::nvfp4_geglu::test {
namespace {

constexpr int64_t kRows = 24, kK = 256, kWidth = 512;
constexpr isobit_nvfp4_layout kLayout = ISOBIT_NVFP4_128X4;

// A tensor quantised with its own global scale.
struct Quantized {
  std::vector<uint8_t> codes, scales;
  float encode = 1.0f;
  isobit_nvfp4_matrix matrix;

  Quantized(int64_t rows, int64_t k) : codes(static_cast<size_t>(rows * k / 2)) {
    int64_t padded_rows = 0, padded_blocks = 0;
    EXPECT_EQ(isobit_nvfp4_scales_shape(kLayout, rows, k, &padded_rows, &padded_blocks), ISOBIT_OK);
    scales.resize(static_cast<size_t>(padded_rows * padded_blocks));
    matrix = nvfp4_matrix(codes.data(), scales.data(), rows, k, kLayout);
  }
  // x: [rows, k] of the shape given above.
  void fill(const isobit_tensor& x, float scale) {
    encode = scale;
    Nvfp4Quantize call;
    call.x = x;
    call.out = matrix;
    call.global_scale.value = encode;
    ASSERT_TRUE(call.run().ok()) << isobit_last_error();
  }
  isobit_nvfp4_scale decode() const {
    isobit_nvfp4_scale scale = {};
    scale.value = 1.0f / encode;
    return scale;
  }
};

std::vector<float> normal(int64_t count, float scale, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 32) * 0x1p-32;
    value = static_cast<float>(sum - 6) * scale;
  }
  return values;
}

float largest(const std::vector<float>& values) {
  float amax = 0;
  for (const float value : values) amax = std::fmax(amax, std::fabs(value));
  return amax;
}

Quantized quantized(const std::vector<float>& values, int64_t rows, int64_t k) {
  Quantized out(rows, k);
  out.fill(tensor(values.data(), {rows, k}), 2688 / largest(values));
  return out;
}

template <class T>
void product(const Quantized& x, const Quantized& weight, int64_t rows, int64_t columns, T* out) {
  Nvfp4Linear call;
  call.x = x.matrix;
  call.weight = weight.matrix;
  call.x_scale = x.decode();
  call.weight_scale = weight.decode();
  call.out = tensor(out, {rows, columns});
  WorkspaceBytes bytes;
  ASSERT_TRUE(call.workspace_size(&bytes).ok()) << isobit_last_error();
  const HostWorkspace memory(bytes.recommended);
  call.use(memory);
  ASSERT_TRUE(call.run().ok()) << isobit_last_error();
}

TEST(Nvfp4Mlp, FusedIsNearTheStagedRecipe) {
  const Quantized x = quantized(normal(kRows * kK, 1, 1), kRows, kK);
  const Quantized merged = quantized(normal(2 * kWidth * kK, 0.06f, 2), 2 * kWidth, kK);
  const Quantized down = quantized(normal(kK * kWidth, 0.04f, 3), kK, kWidth);

  // Staged: bf16 gate and up in one interleaved buffer, bf16 GeGLU, quantiser.
  std::vector<Bf16> pairs(kRows * 2 * kWidth), activated(kRows * kWidth);
  product(x, merged, kRows, 2 * kWidth, pairs.data());
  GegluForward geglu;
  geglu.gate = tensor(pairs.data(), {kRows, kWidth}, {2 * kWidth, 2});
  geglu.up = tensor(pairs.data() + 1, {kRows, kWidth}, {2 * kWidth, 2});
  geglu.out = tensor(activated.data(), {kRows, kWidth});
  geglu.gelu = ISOBIT_GELU_TANH;
  ASSERT_TRUE(geglu.run().ok()) << isobit_last_error();
  constexpr float kEncode = 100;
  Quantized staged(kRows, kWidth), fused(kRows, kWidth);
  staged.fill(geglu.out, kEncode);

  Nvfp4Geglu call;
  call.x = x.matrix;
  call.weight = merged.matrix;
  call.x_scale = x.decode();
  call.gate_scale = call.up_scale = merged.decode();
  call.out_scale.value = fused.encode = kEncode;
  call.out = fused.matrix;
  call.gelu = ISOBIT_GELU_TANH;
  WorkspaceBytes bytes;
  ASSERT_TRUE(call.workspace_size(&bytes).ok()) << isobit_last_error();
  const HostWorkspace memory(bytes.recommended);
  call.use(memory);
  ASSERT_TRUE(call.run().ok()) << isobit_last_error();

  std::vector<float> a(kRows * kK), b(kRows * kK);
  product(staged, down, kRows, kK, a.data());
  product(fused, down, kRows, kK, b.data());
  double error = 0, norm = 0, other = 0, dot = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto staged_value = static_cast<double>(a[i]), fused_value = static_cast<double>(b[i]);
    error += (fused_value - staged_value) * (fused_value - staged_value);
    norm += staged_value * staged_value;
    other += fused_value * fused_value;
    dot += fused_value * staged_value;
  }
  RecordProperty("relative_l2", std::to_string(std::sqrt(error / norm)));
  RecordProperty("cosine", std::to_string(dot / std::sqrt(norm * other)));
  EXPECT_GT(norm, 0);
  EXPECT_LT(std::sqrt(error / norm), 0.05);
  EXPECT_GT(dot / std::sqrt(norm * other), 0.999);
}

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
