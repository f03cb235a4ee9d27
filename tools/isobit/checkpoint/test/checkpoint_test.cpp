#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "temporary_folder.h"

namespace isobit::checkpoint {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// One U8 tensor of four elements.
std::string file_with(const std::string& name, const std::string& data = "data") {
  return safetensors_file("{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", data);
}

std::string text_of(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size()};
}

constexpr char kIndex[] =
    R"({"metadata":{"total_size":8,"note":[{"any":[1.5,null,true]}]},)"
    R"("weight_map":{"lm_head.weight":"model-00002-of-00002.safetensors","x":"model-00001-of-00002.safetensors"}})";

TEST(Checkpoint, FindsTensorsInOneFile) {
  const TemporaryFolder folder;
  auto checkpoint = Checkpoint::open(folder.write("a.safetensors", file_with("x")));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message;
  const auto view = checkpoint->find("x");
  ASSERT_TRUE(view.ok()) << view.status().message;
  EXPECT_EQ(text_of(*view), "data");
  EXPECT_EQ(checkpoint->find("y").status().message,
            folder / "a.safetensors" + ": tensor name: expected \"y\", got \"x\"");
}

TEST(Checkpoint, FindsTensorsInShards) {
  const TemporaryFolder folder;
  folder.write("model.safetensors.index.json", kIndex);
  folder.write("model-00001-of-00002.safetensors", file_with("x", "one1"));
  folder.write("model-00002-of-00002.safetensors", file_with("lm_head.weight", "two2"));
  for (const std::string& path : {folder.path(), folder.path() + "/"}) {
    auto checkpoint = Checkpoint::open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message;
    const auto head = checkpoint->find_head("");
    const auto x = checkpoint->find("x");
    ASSERT_TRUE(head.ok() && x.ok());
    EXPECT_EQ(text_of(*head), "two2");
    EXPECT_EQ(text_of(*x), "one1");
    EXPECT_EQ(text_of(*checkpoint->find_head("x")), "one1");
  }
}

TEST(Checkpoint, AShardThatIsMissingOrLacksItsTensorIsNamed) {
  const TemporaryFolder folder;
  folder.write("model.safetensors.index.json", kIndex);
  folder.write("model-00001-of-00002.safetensors", file_with("other"));
  auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(checkpoint->find("x").status().message,
            folder / "model-00001-of-00002.safetensors" +
                ": tensor \"x\": shard named by the index: expected to hold the tensor, got no such name");
  EXPECT_EQ(checkpoint->find("lm_head.weight").status().message,
            folder / "model-00002-of-00002.safetensors" +
                ": open for reading: expected success, got No such file or directory");
}

TEST(Checkpoint, TiedEmbeddingsOnlyWhenTheConfigSaysSo) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", file_with("model.embed_tokens.weight"));
  const auto head = [&] { return Checkpoint::open(folder.path())->find_head(""); };
  const std::string refusal = folder.path() +
                              ": LM head: tensor: expected lm_head.weight or tied embeddings "
                              "(or name the tensor), got ";
  EXPECT_EQ(head().status().message, refusal + "no word on tie_word_embeddings in a config.json");
  folder.write("config.json", R"({"tie_word_embeddings": false})");
  EXPECT_EQ(head().status().message, refusal + "tie_word_embeddings: false");
  folder.write("config.json", R"({"tie_word_embeddings": "yes"})");
  EXPECT_EQ(head().status().message,
            folder / "config.json" + ": tie_word_embeddings: expected true or false, got the string \"yes\"");
  folder.write("config.json",
               R"({"model_type": "x", "rope": {"tie_word_embeddings": false}, "tie_word_embeddings": true})");
  EXPECT_TRUE(head().ok());
  folder.write("config.json", R"({"tie_word_embeddings": false, "text_config": {"tie_word_embeddings": true}})");
  EXPECT_TRUE(head().ok());
  folder.write("model.safetensors", file_with("other"));
  EXPECT_EQ(head().status().message,
            folder.path() +
                ": LM head: tied embeddings: expected model.embed_tokens.weight (or name the tensor), got \"other\"");
}

TEST(Checkpoint, TheHeadOfItsOwnComesBeforeTiedEmbeddings) {
  const TemporaryFolder folder;
  folder.write("config.json", R"({"tie_word_embeddings": true})");
  folder.write("model.safetensors", file_with("lm_head.weight"));
  EXPECT_EQ(Checkpoint::open(folder.path())->find_head("")->name, "lm_head.weight");
}

TEST(Checkpoint, WhatIsNotAFileIsRefused) {
  const TemporaryFolder folder;
  EXPECT_EQ(Checkpoint::open(folder / "none").status().message,
            folder / "none" + ": open for reading: expected success, got No such file or directory");
  EXPECT_EQ(
      Checkpoint::open(folder.path()).status().message,
      folder.path() + ": files in the folder: expected model.safetensors or model.safetensors.index.json, got neither");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(Checkpoint::open(folder / "pipe").status().message,
            folder / "pipe" + ": kind of file: expected a regular file, got another kind");
  std::filesystem::create_directory(folder / "model.safetensors");
  EXPECT_EQ(Checkpoint::open(folder.path()).status().message,
            folder / "model.safetensors" + ": kind of file: expected a regular file, got a folder");
  EXPECT_FALSE(Checkpoint::open(folder.write("empty", "")).ok());
}

struct BadIndex {
  const char* text;
  const char* message;
};

TEST(Index, MalformedIndexesAreRefusedWithOneLine) {
  const BadIndex cases[] = {
      {"", "i: JSON text: expected well-formed JSON in UTF-8, got an error at byte 1"},
      {"[]", "i: index: expected an object with a weight_map, got an array"},
      {"3", "i: index: expected an object with a weight_map, got the number 3"},
      {"{}", "i: index: expected an object with a weight_map, got no weight_map"},
      {R"({"weight_map":[]})", "i: weight_map: expected an object of file names, got an array"},
      {R"({"weight_map":{"a":3}})",
       "i: tensor \"a\": weight_map: expected the name of a file in the same folder, got the number 3"},
      {R"({"weight_map":{"a":{}}})",
       "i: tensor \"a\": weight_map: expected the name of a file in the same folder, got an object"},
      {R"({"weight_map":{"a":"../b"}})",
       "i: tensor \"a\": weight_map: expected the name of a file in the same folder, got the string \"../b\""},
      {R"({"weight_map":{"a":"/etc/passwd"}})",
       "i: tensor \"a\": weight_map: expected the name of a file in the same folder, got the string \"/etc/passwd\""},
      {R"({"weight_map":{"a":".."}})",
       "i: tensor \"a\": weight_map: expected the name of a file in the same folder, got the string \"..\""},
      {R"({"weight_map":{"a":"b\u0000c"}})",
       "i: tensor \"a\": weight_map: expected the name of a file in the same folder, got the string \"b\\x00c\""},
      {R"({"weight_map":{"a":"b","a":"c"}})",
       "i: in \"weight_map\": key \"a\": names inside one object: expected each name once, got it twice"},
      {R"({"weight_map":{"a":"b"}} x)", "i: JSON text: expected well-formed JSON in UTF-8, got an error at byte 26"},
  };
  for (const BadIndex& bad : cases) {
    const auto map = parse_index(bytes_of(bad.text), "i");
    ASSERT_FALSE(map.ok()) << bad.text;
    EXPECT_EQ(map.status().message, bad.message);
  }
}

TEST(Index, DeepNestingIsRefusedBeforeItCostsStack) {
  const std::string deep = "{\"metadata\":" + std::string(5'000'000, '[');
  EXPECT_EQ(parse_index(bytes_of(deep), "i").status().message,
            "i: nesting of JSON values: expected at most 32 levels, got more");
}

}  // namespace
}  // namespace isobit::checkpoint
