#include "checkpoint/safetensors_writer.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "checkpoint/write_file.h"

namespace isobit::checkpoint {
namespace {

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
  const std::string header = header_bytes(tensors, metadata);
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(header))};
  for (const OutputTensor& tensor : tensors) parts.push_back(tensor.bytes);
  return write_file(path, parts);
}

}  // namespace isobit::checkpoint
