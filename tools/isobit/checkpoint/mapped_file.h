#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "checkpoint/status.h"

namespace isobit::checkpoint {

// A regular file mapped read-only. Pages come and go as memory allows, so a file may be larger than the machine's
// memory. The mapping is private and never written. A file that another process shortens while it is mapped raises
// SIGBUS on access: checkpoints must not be rewritten in place while they are read.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile() = default;

  std::string path_;
  const std::byte* data_ = nullptr;  // null for an empty file
  std::size_t size_ = 0;
};

}  // namespace isobit::checkpoint
