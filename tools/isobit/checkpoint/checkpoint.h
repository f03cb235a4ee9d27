#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/mapped_file.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/status.h"

namespace isobit::checkpoint {

// A tensor's bytes inside a mapped file. The view lives as long as its Checkpoint. The format promises no alignment:
// `bytes` may start at any address.
struct TensorView {
  std::string name;
  std::string file;
  Dtype dtype;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

// What a folder's index and config say; both are untrusted JSON.
using WeightMap = std::map<std::string, std::string, std::less<>>;  // tensor name -> file name
Result<WeightMap> parse_index(std::span<const std::byte> text, const std::string& file);
// tie_word_embeddings at the top or inside text_config; nothing when neither is there.
Result<std::optional<bool>> parse_tied(std::span<const std::byte> text, const std::string& file);

// Tensors by name out of one safetensors file, or out of a Hugging Face folder: model.safetensors if it is there, else
// the shards of model.safetensors.index.json. Shards are mapped when a tensor of theirs is first asked for.
class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::string& path);

  // Every tensor's name, in no promised order.
  std::vector<std::string> names() const;

  // The tensor, or a refusal that names the file or folder and up to five of the names that it holds.
  Result<TensorView> find(const std::string& name);

  // The tensor `name` if given; else the first of `usual` that is there; else the only tensor; else a refusal.
  Result<TensorView> find_one(const std::string& name, std::span<const std::string_view> usual);

  // The LM head: `name` if given; else lm_head.weight; else model.embed_tokens.weight (for multimodal checkpoints
  // language_model.model.embed_tokens.weight), but only if config.json says tie_word_embeddings: true. Guessing would
  // score with the wrong matrix.
  Result<TensorView> find_head(const std::string& name);

 private:
  struct Shard {
    MappedFile file;
    Header header;
  };

  bool has(const std::string& name) const;
  std::string some_names() const;
  Status load(const std::string& file_name);

  std::string path_;                     // as messages show it
  std::string folder_;                   // with a closing slash; empty for a path without one
  std::optional<std::string> one_file_;  // the only file's name, if there is no index
  bool is_folder_ = false;
  WeightMap index_;                      // empty if there is only one file
  std::map<std::string, Shard> shards_;  // by file name
};

}  // namespace isobit::checkpoint
