#include "checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace isobit::checkpoint {
namespace {

Status system_refusal(const std::string& path, const std::string& rule) {
  return refuse(shown_path(path), "", rule, "success", std::generic_category().message(errno));
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must fail below as "not a regular file" instead of waiting for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_refusal(path, "open for reading");
  MappedFile file;
  file.path_ = shown_path(path);
  struct stat info {};
  Status status;
  if (::fstat(fd, &info) != 0) {
    status = system_refusal(path, "read the file's size");
  } else if (!S_ISREG(info.st_mode)) {
    status =
        refuse(file.path_, "", "kind of file", "a regular file", S_ISDIR(info.st_mode) ? "a folder" : "another kind");
  } else if (info.st_size > 0) {
    void* address = ::mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED) {
      status = system_refusal(path, "map into memory");
    } else {
      file.data_ = static_cast<const std::byte*>(address);
      file.size_ = static_cast<std::size_t>(info.st_size);
    }
  }
  ::close(fd);
  if (!status.ok()) return status;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace isobit::checkpoint
