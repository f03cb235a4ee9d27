#include "checkpoint/safetensors_writer.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

namespace isobit::checkpoint {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Status check(const std::string& path, std::span<const OutputTensor> tensors) {
  std::set<std::string> names;
  for (const OutputTensor& tensor : tensors) {
    const std::string subject = "tensor " + in_quotes(tensor.name);
    if (!names.insert(tensor.name).second || tensor.name == "__metadata__") {
      return refuse(path, subject, "name", "a name of its own", "one already taken");
    }
    std::uint64_t bits = dtype_bits(tensor.dtype);
    for (const std::uint64_t size : tensor.shape) bits *= size;
    if (bits != 8 * tensor.bytes.size()) {
      return refuse(path, subject, "size", std::to_string(bits / 8) + " bytes", std::to_string(tensor.bytes.size()));
    }
  }
  return Status{};
}

// Length, JSON and padding, ready to be followed by the tensors' bytes.
std::string header_bytes(std::span<const OutputTensor> tensors, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t begin = 0;
  for (const OutputTensor& tensor : tensors) {
    const std::uint64_t end = begin + tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  constexpr std::size_t kAlignment = 64;
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((kAlignment - (8 + text.size()) % kAlignment) % kAlignment, ' ');
  std::string length;
  for (int shift = 0; shift < 64; shift += 8) length += static_cast<char>(text.size() >> shift & 0xFF);
  return length + text;
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const OutputTensor> tensors,
                         const std::map<std::string, std::string>& metadata) {
  if (Status status = check(path, tensors); !status.ok()) return status;
  const std::string partial = path + ".partial";
  const auto system_refusal = [&](const std::string& rule) {
    const int code = errno;
    std::remove(partial.c_str());
    return refuse(path, "", rule, "success", std::generic_category().message(code));
  };
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(partial.c_str(), "wb"));
  if (!file) return system_refusal("open for writing");
  const std::string header = header_bytes(tensors, metadata);
  if (std::fwrite(header.data(), 1, header.size(), file.get()) != header.size()) return system_refusal("write");
  for (const OutputTensor& tensor : tensors) {
    const auto bytes = tensor.bytes;
    if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) return system_refusal("write");
  }
  if (std::fclose(file.release()) != 0) return system_refusal("write");
  if (std::rename(partial.c_str(), path.c_str()) != 0) return system_refusal("rename the complete file");
  return Status{};
}

}  // namespace isobit::checkpoint
