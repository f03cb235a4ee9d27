#include "pack/layers.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace isobit::cli {
namespace {

using checkpoint::refuse;
using checkpoint::Result;

struct Spelling {
  const char *gate, *up, *down;
};
constexpr Spelling kSpellings[] = {
    {".gate_proj", ".up_proj", ".down_proj"},
    {".DenseReluDense.wi_0", ".DenseReluDense.wi_1", ".DenseReluDense.wo"},
};
constexpr const char* kData[] = {".weight", ".weight_packed"};

// Model types whose gated MLP is GeGLU with the tanh form, whatever their config calls it: Gemma 1's says "gelu".
const std::set<std::string> kTanhModels = {"gemma",     "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text",
                                           "paligemma", "pi0",    "pi05",   "t5",          "mt5",     "umt5"};

// The part of `name` before `end`, or "" if it does not end so.
std::string before(const std::string& name, const std::string& end) {
  return name.ends_with(end) ? name.substr(0, name.size() - end.size()) : "";
}

void add_projections(const std::vector<std::string>& names, std::vector<Layer>* layers) {
  const std::set<std::string> all(names.begin(), names.end());
  for (const std::string& name : names) {
    for (const Spelling& spelling : kSpellings) {
      for (const char* const data : kData) {
        const std::string prefix = before(name, spelling.gate + std::string(data));
        if (prefix.empty() || !all.contains(prefix + spelling.up + data)) continue;
        layers->push_back({prefix, {prefix + spelling.gate}, {prefix + spelling.up}, {prefix + spelling.down}});
      }
    }
  }
}

void add_stacks(const std::vector<std::string>& names, std::vector<Layer>* layers) {
  for (const std::string& name : names) {
    for (const char separator : {'/', '.'}) {
      const std::string prefix = before(name, separator + std::string("gating_einsum"));
      if (prefix.empty()) continue;
      const std::string linear = prefix + separator + "linear";
      layers->push_back(
          {prefix, {name, Stack::kGate, 0, linear}, {name, Stack::kUp, 0, linear}, {linear, Stack::kDown}});
    }
  }
}

// model_type and activation of a config; of text_config where there is one.
struct Config {
  std::string model, activation;
};

std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Config read_config(const std::string& path) {
  std::ifstream file(path + "/config.json");
  if (!file) return {};
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return {};
  Config config = {text_at(json, "model_type"), ""};
  const auto text = json.find("text_config");
  for (const nlohmann::json* const object : {text != json.end() && text->is_object() ? &*text : &json, &json}) {
    for (const char* const key : {"hidden_activation", "hidden_act", "feed_forward_proj", "dense_act_fn"}) {
      if (config.activation.empty()) config.activation = text_at(*object, key);
    }
  }
  return config;
}

bool is_swish(const std::string& activation) {
  return activation.find("silu") != std::string::npos || activation.find("swish") != std::string::npos;
}

}  // namespace

Result<std::vector<Layer>> find_layers(const std::vector<std::string>& names, const std::string& path) {
  std::vector<Layer> layers;
  add_projections(names, &layers);
  add_stacks(names, &layers);
  if (!layers.empty()) return layers;
  const auto plain = std::find_if(names.begin(), names.end(),
                                  [](const std::string& name) { return name.find(".mlp.fc1.") != std::string::npos; });
  if (plain != names.end()) {
    return refuse(path, "", "architecture", "gated MLPs", "the plain MLP " + checkpoint::in_quotes(*plain));
  }
  return refuse(path, "", "architecture", "gate_proj and up_proj, wi_0 and wi_1, or gating_einsum",
                names.empty() ? "no tensor" : checkpoint::in_quotes(names.front()) + " and others");
}

Result<std::string> gelu_form(const std::string& path, const std::vector<Layer>& layers, const std::string& wanted) {
  const Config config = read_config(path);
  const std::string model =
      config.model.empty() ? "no model_type" : "model_type " + checkpoint::in_quotes(config.model);
  if (is_swish(config.activation)) {
    return refuse(path, "", "architecture", "GeGLU",
                  model + " with " + checkpoint::in_quotes(config.activation) + " (SwiGLU)");
  }
  const bool openpi =
      layers.front().name.starts_with("paligemma_with_expert.") || layers.front().gate.stack != Stack::kNone;
  const bool known = openpi || kTanhModels.contains(config.model);
  if (known && wanted == "erf") return refuse(path, "", "--gelu", "tanh for this architecture", "erf");
  if (known) return std::string("tanh");
  if (!wanted.empty()) return wanted;
  return refuse(path, "", "architecture", "a Gemma, PaliGemma, pi0 or T5 config.json, or --gelu", model);
}

}  // namespace isobit::cli
