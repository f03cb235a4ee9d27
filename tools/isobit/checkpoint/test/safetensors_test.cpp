#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "temporary_folder.h"

namespace isobit::checkpoint {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = fs::path(ISOBIT_SOURCE_DIR) / "tests/corpus/safetensors";

std::string slurp(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Parses a copy that ends where its allocation ends, so that AddressSanitizer sees a read past the file.
Result<Header> parse(const std::string& content, const std::string& name) {
  const auto exact = std::make_unique<std::byte[]>(content.size());
  std::copy_n(reinterpret_cast<const std::byte*>(content.data()), content.size(), exact.get());
  return parse_safetensors({exact.get(), content.size()}, name);
}

std::map<std::string, std::string> expected_messages() {
  std::map<std::string, std::string> messages;
  std::ifstream stream(kCorpus / "malformed/expected.txt");
  for (std::string line; std::getline(stream, line);) messages[line.substr(0, line.find(':'))] = line;
  return messages;
}

TEST(Safetensors, MalformedCorpusIsRefusedWithOneExactLineEach) {
  auto expected = expected_messages();
  for (const auto& item : fs::directory_iterator(kCorpus / "malformed")) {
    if (item.path().extension() != ".safetensors") continue;
    const std::string name = item.path().filename().string();
    const auto header = parse(slurp(item.path()), name);
    ASSERT_FALSE(header.ok()) << name;
    EXPECT_EQ(header.status().message, expected[name]);
    EXPECT_EQ(header.status().message.find_first_of("\n\r\x1b"), std::string::npos) << name;
    expected.erase(name);
  }
  EXPECT_TRUE(expected.empty()) << expected.begin()->first << " is expected but not in the corpus";
}

TEST(Safetensors, ValidCorpusParsesAndCoversTheData) {
  int files = 0;
  for (const auto& item : fs::directory_iterator(kCorpus / "valid")) {
    const std::string content = slurp(item.path());
    const auto header = parse(content, item.path().filename().string());
    ASSERT_TRUE(header.ok()) << header.status().message;
    std::uint64_t covered = 0;
    for (const TensorEntry& entry : header->tensors) {
      EXPECT_EQ(entry.begin, covered);
      covered = entry.end;
    }
    EXPECT_EQ(header->data_start + covered, content.size());
    ++files;
  }
  EXPECT_EQ(files, 10);
}

TEST(Safetensors, EveryTruncationOfAFileIsRefused) {
  const std::string content = slurp(kCorpus / "valid/two_out_of_order.safetensors");
  for (std::size_t size = 0; size < content.size(); ++size) {
    EXPECT_FALSE(parse(content.substr(0, size), "cut").ok()) << size;
  }
  EXPECT_FALSE(parse(content + "x", "longer").ok());
}

// Any byte may be anything; whatever is accepted must keep the promises of Header.
TEST(Safetensors, EveryChangedByteIsRefusedOrStaysInBounds) {
  const std::string content = slurp(kCorpus / "valid/two_out_of_order.safetensors");
  for (std::size_t i = 0; i < content.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = content;
      changed[i] = static_cast<char>(value);
      const auto header = parse(changed, "changed");
      if (!header.ok()) continue;
      std::uint64_t covered = 0;
      for (const TensorEntry& entry : header->tensors) {
        ASSERT_EQ(entry.begin, covered);
        covered = entry.end;
      }
      ASSERT_EQ(header->data_start + covered, changed.size());
    }
  }
}

TEST(Safetensors, ReadsNamesShapesTypesAndMetadata) {
  const auto header = parse(slurp(kCorpus / "valid/metadata.safetensors"), "metadata");
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  const TensorEntry* entry = header->find("a");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->dtype, Dtype::kF32);
  EXPECT_EQ(entry->shape, std::vector<std::uint64_t>{2});
  EXPECT_EQ(entry->end - entry->begin, 8u);
  EXPECT_EQ(header->find("b"), nullptr);
}

TEST(Safetensors, EveryTypeNameGoesThereAndBack) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Dtype::kC64); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    names.insert(dtype_name(dtype));
    ASSERT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(names.size(), 20u);
}

TEST(Safetensors, HeaderAtTheLimitIsReadAndOneByteMoreIsRefused) {
  const std::string padding(kMaxHeaderBytes - 2, ' ');
  EXPECT_TRUE(parse(safetensors_file("{}" + padding), "limit").ok());
  EXPECT_FALSE(parse(safetensors_file("{}" + padding + " "), "over").ok());
}

TEST(Safetensors, ManyTensorsAndManyNamesAreBounded) {
  std::string header = "{\"__metadata__\":{";
  for (int i = 0; i <= 1 << 20; ++i) header += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  const auto result = parse(safetensors_file(header + "}}"), "many");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message, "many: names inside one object: expected at most 1048576, got more");
}

TEST(InQuotes, KeepsOneLineAndNoTerminalControl) {
  EXPECT_EQ(in_quotes("a\"b\\c\n\x1b\x7f\xc2\x9b"), "\"a\\\"b\\\\c\\x0a\\x1b\\x7f\\xc2\\x9b\"");
  EXPECT_EQ(in_quotes(std::string(119, 'x') + "é"), "\"" + std::string(119, 'x') + "...\"");
}

}  // namespace
}  // namespace isobit::checkpoint
