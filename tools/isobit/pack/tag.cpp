#include "pack/tag.h"

#include <isobit/nvfp4_geglu.h>
#include <isobit/nvfp4_linear.h>
#include <isobit/nvfp4_quantize.h>

#include <set>

#include "checkpoint/mapped_file.h"
#include "checkpoint/safetensors.h"

namespace isobit::cli {
namespace {

// Every key with the values that this version reads.
std::map<std::string, std::set<std::string>> known_tags() {
  return {{"isobit.format", {"nvfp4-mlp/0"}},
          {"isobit.layout", {"linear", "128x4", "8x4"}},
          {"isobit.interleave", {"gate 0, up 0, gate 1, up 1"}},
          {"isobit.global_scales", {"decode"}},
          {"isobit.gelu", {"tanh", "erf"}},
          {"isobit.prescale", {"none", "x times input_scale"}},
          {"isobit.quantizer", {isobit_nvfp4_quantize_contract()}},
          {"isobit.geglu", {isobit_nvfp4_geglu_contract()}},
          {"isobit.linear", {isobit_nvfp4_linear_contract()}}};
}

}  // namespace

const char* layout_name(isobit_nvfp4_layout layout) {
  return layout == ISOBIT_NVFP4_LINEAR ? "linear" : layout == ISOBIT_NVFP4_128X4 ? "128x4" : "8x4";
}

Tag make_tag(isobit_nvfp4_layout layout, const std::string& gelu, bool prescaled) {
  Tag tag;
  for (const auto& [key, values] : known_tags()) tag[key] = *values.begin();
  tag["isobit.layout"] = layout_name(layout);
  tag["isobit.gelu"] = gelu;
  tag["isobit.prescale"] = prescaled ? "x times input_scale" : "none";
  return tag;
}

checkpoint::Result<Tag> read_tag(const std::string& path) {
  auto file = checkpoint::MappedFile::open(path);
  if (!file.ok()) return file.status();
  auto header = checkpoint::parse_safetensors(file->bytes(), file->path());
  if (!header.ok()) return header.status();
  const auto known = known_tags();
  for (const auto& [key, values] : known) {
    const auto found = header->metadata.find(key);
    const std::string got = found == header->metadata.end() ? "none" : checkpoint::in_quotes(found->second);
    if (found != header->metadata.end() && values.contains(found->second)) continue;
    std::string expected;
    for (const std::string& value : values)
      expected += std::string(expected.empty() ? "" : " or ") + checkpoint::in_quotes(value);
    return checkpoint::refuse(file->path(), "tag " + key, "value", expected, got);
  }
  for (const auto& [key, value] : header->metadata) {
    if (key.starts_with("isobit.") && !known.contains(key)) {
      return checkpoint::refuse(file->path(), "tag " + checkpoint::in_quotes(key), "key", "one that this version knows",
                                "a newer one");
    }
  }
  return header->metadata;
}

}  // namespace isobit::cli
