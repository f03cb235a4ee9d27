// Arbitrary bytes as a safetensors file, as a checkpoint index and as a config: each is refused with one line, or what
// is handed out lies inside the bytes. Reads outside them are AddressSanitizer's to find.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"

namespace {

using namespace isobit::checkpoint;

// A broken promise must end the run like a memory error does.
void require(bool holds) {
  if (!holds) std::abort();
}

void require_one_line(const Status& status) {
  require(!status.ok());
  for (const char c : status.message) require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

void check_header(const Header& header, std::span<const std::byte> bytes) {
  std::uint64_t covered = 0;
  for (const TensorEntry& entry : header.tensors) {
    require(entry.begin == covered && entry.end >= entry.begin);
    std::uint64_t bits = dtype_bits(entry.dtype);
    for (const std::uint64_t size : entry.shape) bits *= size;
    require(bits == 8 * (entry.end - entry.begin));
    // volatile: each byte is really read
    const volatile std::byte* tensor = bytes.data() + header.data_start + entry.begin;
    for (std::uint64_t i = 0; i < entry.end - entry.begin; ++i) static_cast<void>(tensor[i]);
    covered = entry.end;
  }
  require(header.data_start + covered == bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto header = parse_safetensors(bytes, "file");
  if (header.ok()) {
    check_header(*header, bytes);
  } else {
    require_one_line(header.status());
  }
  if (const auto index = parse_index(bytes, "file"); !index.ok()) {
    require_one_line(index.status());
  } else {
    for (const auto& [name, file] : *index) require(!file.empty() && file.find('/') == std::string::npos);
  }
  if (const auto tied = parse_tied(bytes, "file"); !tied.ok()) require_one_line(tied.status());
  return 0;
}
