#include "checkpoint/safetensors_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "temporary_folder.h"

namespace isobit::checkpoint {
namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }

TEST(Writer, WhatIsWrittenIsReadBack) {
  const TemporaryFolder folder;
  const std::vector<float> logp{-1.5f, -0.25f, -3.0f};
  const std::vector<float> top{1, 2, 3, 4, 5, 6};
  const OutputTensor tensors[] = {{"logp", Dtype::kF32, {3}, bytes_of(logp)},
                                  {"top \"logp\"", Dtype::kF32, {3, 2}, bytes_of(top)},
                                  {"none", Dtype::kI64, {0, 7}, {}}};
  const std::string path = folder / "out.safetensors";
  ASSERT_EQ(write_safetensors(path, tensors, {{"contract", "x/1"}}).message, "");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message;
  for (const OutputTensor& tensor : tensors) {
    const auto view = checkpoint->find(tensor.name);
    ASSERT_TRUE(view.ok()) << view.status().message;
    EXPECT_EQ(view->dtype, tensor.dtype);
    EXPECT_EQ(view->shape, tensor.shape);
    ASSERT_EQ(view->bytes.size(), tensor.bytes.size());
    EXPECT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(), view->bytes.begin()));
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(checkpoint->find("logp")->bytes.data()) % 64, 0u);
}

TEST(Writer, RefusesWrongSizesAndNamesTwice) {
  const TemporaryFolder folder;
  const std::vector<float> two{1, 2};
  const std::string path = folder / "out.safetensors";
  const OutputTensor wrong[] = {{"a", Dtype::kF32, {3}, bytes_of(two)}};
  EXPECT_EQ(write_safetensors(path, wrong).message, path + ": tensor \"a\": size: expected 12 bytes, got 8");
  const OutputTensor twice[] = {{"a", Dtype::kF32, {2}, bytes_of(two)}, {"a", Dtype::kF32, {2}, bytes_of(two)}};
  EXPECT_FALSE(write_safetensors(path, twice).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Writer, AFailedWriteLeavesTheOlderFile) {
  const TemporaryFolder folder;
  const std::string path = folder.write("out.safetensors", "older");
  std::filesystem::create_directory(path + ".partial");  // opening it for writing fails
  const std::vector<float> two{1, 2};
  const OutputTensor tensors[] = {{"a", Dtype::kF32, {2}, bytes_of(two)}};
  EXPECT_FALSE(write_safetensors(path, tensors).ok());
  EXPECT_EQ(std::filesystem::file_size(path), 5u);
}

TEST(Writer, AFullDiskIsReported) {
  const std::vector<float> two{1, 2};
  const OutputTensor tensors[] = {{"a", Dtype::kF32, {2}, bytes_of(two)}};
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder / "out.partial");
  const Status status = write_safetensors(folder / "out", tensors);
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace
}  // namespace isobit::checkpoint
