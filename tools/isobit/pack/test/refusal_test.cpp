// What pack refuses, and the tag that a reader checks.
#include <algorithm>
#include <fstream>
#include <span>

#include "pack/tag.h"
#include "pack/test/fixture.h"

namespace isobit::cli {
namespace {

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
  Tag tag = make_tag(ISOBIT_NVFP4_LINEAR, "tanh", false);
  tag["isobit.interleave"] = "gate, then up";
  const std::vector<std::byte> bytes(4);
  const checkpoint::OutputTensor one = {"a", Dtype::kF32, {1}, bytes};
  ASSERT_TRUE(checkpoint::write_safetensors(input(), std::span(&one, 1), tag).ok());
  EXPECT_NE(read_tag(input()).status().message.find("got \"gate, then up\""), std::string::npos);
}

}  // namespace
}  // namespace isobit::cli
