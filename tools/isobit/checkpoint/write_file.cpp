#include "checkpoint/write_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace isobit::checkpoint {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

bool write_bytes(std::span<const std::byte> bytes, std::FILE* file) {
  return bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
}

Status write_file(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  const std::string partial = path + ".partial";
  const auto system_refusal = [&](const std::string& rule) {
    const int code = errno;
    std::remove(partial.c_str());
    return refuse(shown_path(path), "", rule, "success", std::generic_category().message(code));
  };
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(partial.c_str(), "wb"));
  if (!file) return system_refusal("open for writing");
  for (const auto part : parts) {
    if (!write_bytes(part, file.get())) return system_refusal("write");
  }
  if (std::fclose(file.release()) != 0) return system_refusal("write");
  if (std::rename(partial.c_str(), path.c_str()) != 0) return system_refusal("rename the complete file");
  return Status{};
}

}  // namespace isobit::checkpoint
