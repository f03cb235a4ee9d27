#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/dtype.h"
#include "checkpoint/status.h"

namespace isobit::checkpoint {

// One tensor to write: row-major, little-endian elements.
struct OutputTensor {
  std::string name;
  Dtype dtype;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;  // as many as dtype and shape say
};

// Writes a safetensors file whose data part starts at a multiple of 64 bytes; whole or not at all, as SafetensorsStream
// does.
Status write_safetensors(const std::string& path, std::span<const OutputTensor> tensors,
                         const std::map<std::string, std::string>& metadata = {});

}  // namespace isobit::checkpoint
