#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "checkpoint/json_walk.h"

namespace isobit::checkpoint {
namespace {

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kConfigFile = "config.json";
constexpr std::string_view kHeadNames[] = {"lm_head.weight", "language_model.lm_head.weight"};
constexpr std::string_view kEmbeddingNames[] = {"model.embed_tokens.weight", "language_model.model.embed_tokens.weight",
                                                "model.language_model.embed_tokens.weight"};
// Index and config hold metadata of any shape; nothing real nests deeper.
constexpr std::size_t kJsonDepth = 32;

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// A shard stands in the folder itself: an index must not lead to other places of the file system.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Status check_json_size(std::span<const std::byte> text, const std::string& file) {
  if (text.size() <= kMaxHeaderBytes) return Status{};
  return refuse(file, "", "file size", "at most " + std::to_string(kMaxHeaderBytes) + " bytes",
                std::to_string(text.size()));
}

}  // namespace

Result<WeightMap> parse_index(std::span<const std::byte> text, const std::string& file) {
  if (Status status = check_json_size(text, file); !status.ok()) return status;
  WeightMap map;
  bool has_map = false;
  Status status = walk_json(text, file, kJsonDepth, [&](const JsonEvent& event) {
    const auto& path = event.path;
    if (path.empty() && event.kind != JsonKind::kBeginObject && event.kind != JsonKind::kEndObject) {
      return refuse(file, "", "index", "an object with a weight_map", describe(event));
    }
    if (path.empty() || path[0] != "weight_map") return Status{};
    if (path.size() == 1) {
      has_map = event.kind == JsonKind::kBeginObject || event.kind == JsonKind::kEndObject;
      return has_map ? Status{} : refuse(file, "", "weight_map", "an object of file names", describe(event));
    }
    const std::string subject = "tensor " + in_quotes(path[1]);
    if (event.kind != JsonKind::kString || !is_plain_name(event.text)) {
      return refuse(file, subject, "weight_map", "the name of a file in the same folder", describe(event));
    }
    map.emplace(path[1], event.text);
    return Status{};
  });
  if (!status.ok()) return status;
  if (!has_map) return refuse(file, "", "index", "an object with a weight_map", "no weight_map");
  return map;
}

Result<std::optional<bool>> parse_tied(std::span<const std::byte> text, const std::string& file) {
  if (Status status = check_json_size(text, file); !status.ok()) return status;
  std::optional<bool> top;
  std::optional<bool> nested;
  Status status = walk_json(text, file, kJsonDepth, [&](const JsonEvent& event) {
    const auto& path = event.path;
    const bool is_top = path.size() == 1 && path[0] == "tie_word_embeddings";
    const bool is_nested = path.size() == 2 && path[0] == "text_config" && path[1] == "tie_word_embeddings";
    if (!is_top && !is_nested) return Status{};
    if (event.kind != JsonKind::kBool) {
      return refuse(file, "", "tie_word_embeddings", "true or false", describe(event));
    }
    (is_top ? top : nested) = event.flag;
    return Status{};
  });
  if (!status.ok()) return status;
  // The text model's own word counts where a multimodal config gives both.
  return nested ? nested : top;
}

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.path_ = shown_path(path);
  std::error_code ignored;
  checkpoint.is_folder_ = std::filesystem::is_directory(path, ignored);
  if (!checkpoint.is_folder_) {
    const auto slash = path.rfind('/');
    checkpoint.folder_ = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    checkpoint.one_file_ = slash == std::string::npos ? path : path.substr(slash + 1);
  } else {
    checkpoint.folder_ = path.ends_with('/') ? path : path + "/";
    if (exists(checkpoint.folder_ + std::string(kSingleFile))) checkpoint.one_file_ = kSingleFile;
  }
  if (checkpoint.one_file_) {
    if (Status status = checkpoint.load(*checkpoint.one_file_); !status.ok()) return status;
    return checkpoint;
  }
  const std::string index_path = checkpoint.folder_ + std::string(kIndexFile);
  if (!exists(index_path)) {
    return refuse(checkpoint.path_, "", "files in the folder",
                  std::string(kSingleFile) + " or " + std::string(kIndexFile), "neither");
  }
  auto index_file = MappedFile::open(index_path);
  if (!index_file.ok()) return index_file.status();
  auto index = parse_index(index_file->bytes(), index_file->path());
  if (!index.ok()) return index.status();
  checkpoint.index_ = std::move(*index);
  return checkpoint;
}

Status Checkpoint::load(const std::string& file_name) {
  if (shards_.contains(file_name)) return Status{};
  auto file = MappedFile::open(folder_ + file_name);
  if (!file.ok()) return file.status();
  auto header = parse_safetensors(file->bytes(), file->path());
  if (!header.ok()) return header.status();
  shards_.emplace(file_name, Shard{std::move(*file), std::move(*header)});
  return Status{};
}

bool Checkpoint::has(const std::string& name) const {
  if (!one_file_) return index_.contains(name);
  return shards_.at(*one_file_).header.find(name) != nullptr;
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  if (one_file_) {
    for (const TensorEntry& entry : shards_.at(*one_file_).header.tensors) names.push_back(entry.name);
  } else {
    for (const auto& [name, file] : index_) names.push_back(name);
  }
  return names;
}

std::string Checkpoint::some_names() const {
  constexpr std::size_t kShown = 5;
  const std::vector<std::string> all = names();
  if (all.empty()) return "no tensor";
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kShown); ++i) text += (i > 0 ? ", " : "") + in_quotes(all[i]);
  return text + (all.size() > kShown ? " and " + std::to_string(all.size() - kShown) + " more" : "");
}

Result<TensorView> Checkpoint::find(const std::string& name) {
  if (!has(name)) return refuse(path_, "", "tensor name", in_quotes(name), some_names());
  const std::string& file_name = one_file_ ? *one_file_ : index_.find(name)->second;
  if (Status status = load(file_name); !status.ok()) return status;
  const Shard& shard = shards_.at(file_name);
  const TensorEntry* entry = shard.header.find(name);
  if (entry == nullptr) {
    return refuse(shard.file.path(), "tensor " + in_quotes(name), "shard named by the index", "to hold the tensor",
                  "no such name");
  }
  return TensorView{entry->name, shard.file.path(), entry->dtype, entry->shape,
                    shard.file.bytes().subspan(shard.header.data_start + entry->begin, entry->end - entry->begin)};
}

Result<TensorView> Checkpoint::find_one(const std::string& name, std::span<const std::string_view> usual) {
  if (!name.empty()) return find(name);
  for (const std::string_view candidate : usual) {
    if (has(std::string(candidate))) return find(std::string(candidate));
  }
  const std::vector<std::string> all = names();
  if (all.size() == 1) return find(all[0]);
  std::string expected = "the name of one";
  for (const std::string_view candidate : usual) expected += ", or one called " + std::string(candidate);
  return refuse(path_, "", "tensor", expected, some_names());
}

Result<TensorView> Checkpoint::find_head(const std::string& name) {
  if (!name.empty()) return find(name);
  for (const std::string_view head : kHeadNames) {
    if (has(std::string(head))) return find(std::string(head));
  }
  const std::string expected = std::string(kHeadNames[0]) + " or tied embeddings";
  std::optional<bool> tied;
  const std::string config_path = folder_ + std::string(kConfigFile);
  if (is_folder_ && exists(config_path)) {
    auto config = MappedFile::open(config_path);
    if (!config.ok()) return config.status();
    const auto said = parse_tied(config->bytes(), config->path());
    if (!said.ok()) return said.status();
    tied = *said;
  }
  if (!tied.value_or(false)) {
    const std::string got = tied ? "tie_word_embeddings: false" : "no word on tie_word_embeddings in a config.json";
    return refuse(path_, "LM head", "tensor", expected + " (or name the tensor)", got);
  }
  for (const std::string_view embedding : kEmbeddingNames) {
    if (has(std::string(embedding))) return find(std::string(embedding));
  }
  return refuse(path_, "LM head", "tied embeddings", std::string(kEmbeddingNames[0]) + " (or name the tensor)",
                some_names());
}

}  // namespace isobit::checkpoint
