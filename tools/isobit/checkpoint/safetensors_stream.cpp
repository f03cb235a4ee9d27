#include "checkpoint/safetensors_stream.h"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "checkpoint/write_file.h"

namespace isobit::checkpoint {

Result<SafetensorsStream> SafetensorsStream::open(const std::string& path, const std::vector<PlannedTensor>& plan,
                                                  const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string> names;
  std::uint64_t begin = 0;
  for (const PlannedTensor& tensor : plan) {
    if (!names.insert(tensor.name).second || tensor.name == "__metadata__") {
      return refuse(path, "tensor " + in_quotes(tensor.name), "name", "a name of its own", "one already taken");
    }
    std::uint64_t bits = dtype_bits(tensor.dtype);
    for (const std::uint64_t size : tensor.shape) bits *= size;
    const std::uint64_t end = begin + bits / 8;
    header[tensor.name] = {
        {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  constexpr std::size_t kAlignment = 64;
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((kAlignment - (8 + text.size()) % kAlignment) % kAlignment, ' ');
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(text.size() >> shift & 0xFF);
  bytes += text;

  SafetensorsStream stream;
  stream.path_ = path;
  stream.partial_ = path + ".partial";
  stream.file_.reset(std::fopen(stream.partial_.c_str(), "wb"));
  if (!stream.file_) return stream.system_refusal("open for writing");
  stream.left_ = bytes.size();
  if (Status status = stream.write(std::as_bytes(std::span(bytes))); !status.ok()) return status;
  stream.left_ = begin;
  return stream;
}

Status SafetensorsStream::write(std::span<const std::byte> bytes) {
  if (bytes.size() > left_) {
    return refuse(path_, "", "bytes", std::to_string(left_) + " more", std::to_string(bytes.size()));
  }
  if (!write_bytes(bytes, file_.get())) return system_refusal("write");
  left_ -= bytes.size();
  return Status{};
}

Status SafetensorsStream::finish() {
  if (left_ != 0) return refuse(path_, "", "bytes", "all of the plan", std::to_string(left_) + " missing");
  const bool written = std::fclose(file_.release()) == 0;
  if (written && std::rename(partial_.c_str(), path_.c_str()) == 0) return Status{};
  Status status = system_refusal(written ? "rename the complete file" : "write");
  std::remove(partial_.c_str());
  return status;
}

SafetensorsStream::~SafetensorsStream() {
  if (!file_) return;
  file_.reset();
  std::remove(partial_.c_str());
}

Status SafetensorsStream::system_refusal(const std::string& rule) const {
  return refuse(shown_path(path_), "", rule, "success", std::generic_category().message(errno));
}

}  // namespace isobit::checkpoint
