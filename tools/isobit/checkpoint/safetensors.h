#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/dtype.h"
#include "checkpoint/status.h"

namespace isobit::checkpoint {

// One tensor of a file: row-major elements at [begin, end) of the file's data part.
struct TensorEntry {
  std::string name;
  Dtype dtype;
  std::vector<std::uint64_t> shape;  // empty for a scalar
  std::uint64_t begin;
  std::uint64_t end;
};

// A checked header. Entries are in the order of their bytes; together they cover the data part without hole or overlap.
struct Header {
  std::vector<TensorEntry> tensors;
  std::map<std::string, std::string> metadata;
  std::uint64_t data_start = 0;  // offset of the data part in the file

  const TensorEntry* find(std::string_view name) const;
};

// Largest accepted header, the format's own limit.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

// Reads the header of a whole safetensors file given as bytes. The bytes are untrusted: nothing outside the span is
// read, and every rule that the format states is checked before an entry is handed out:
//   8 bytes length N (little-endian), 2 <= N <= kMaxHeaderBytes and N <= size - 8; N bytes of JSON, from `{` to `}`
//   and then only spaces; per tensor exactly dtype, shape and data_offsets; the product of the shape fits 64 bits and
//   makes a whole number of bytes equal to end - begin; entries cover [0, size - 8 - N) without hole or overlap;
//   no name twice; __metadata__ maps strings to strings.
// `file` is only for messages. Source: the format's description in the safetensors project's README.
Result<Header> parse_safetensors(std::span<const std::byte> bytes, const std::string& file);

}  // namespace isobit::checkpoint
