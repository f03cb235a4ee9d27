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
    if (part.empty()) continue;  // its address may be null, which fwrite does not take
    if (std::fwrite(part.data(), 1, part.size(), file.get()) != part.size()) return system_refusal("write");
  }
  if (std::fclose(file.release()) != 0) return system_refusal("write");
  if (std::rename(partial.c_str(), path.c_str()) != 0) return system_refusal("rename the complete file");
  return Status{};
}

}  // namespace isobit::checkpoint
