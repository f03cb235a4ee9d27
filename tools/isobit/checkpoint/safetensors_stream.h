#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/dtype.h"
#include "checkpoint/status.h"

namespace isobit::checkpoint {

// A tensor that will be written: its bytes come later.
struct PlannedTensor {
  std::string name;
  Dtype dtype;
  std::vector<std::uint64_t> shape;
};

// Writes a safetensors file whose tensors need not be in memory together: the header first, then their bytes in the
// order of the plan, in pieces of any size. The file appears under its path at finish(), when every byte is there;
// until then the bytes are in path + ".partial", which goes away with the object.
class SafetensorsStream {
 public:
  static Result<SafetensorsStream> open(const std::string& path, const std::vector<PlannedTensor>& plan,
                                        const std::map<std::string, std::string>& metadata);
  Status write(std::span<const std::byte> bytes);
  Status finish();

  SafetensorsStream(SafetensorsStream&&) = default;
  SafetensorsStream& operator=(SafetensorsStream&&) = default;
  ~SafetensorsStream();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  SafetensorsStream() = default;
  Status system_refusal(const std::string& rule) const;

  std::string path_, partial_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::uint64_t left_ = 0;  // bytes of the plan still to come
};

}  // namespace isobit::checkpoint
