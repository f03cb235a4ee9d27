// Two safetensors files: the same tensors, byte for byte; of float32 ones the largest difference too.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "checkpoint/mapped_file.h"
#include "checkpoint/safetensors.h"
#include "command.h"
#include "compare/compare.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

struct TensorFile {
  checkpoint::MappedFile file;
  checkpoint::Header header;

  std::span<const std::byte> bytes(const checkpoint::TensorEntry& tensor) const {
    return file.bytes().subspan(header.data_start + tensor.begin, tensor.end - tensor.begin);
  }
};

template <class T>
T taken(checkpoint::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message);
  return std::move(*result);
}

TensorFile open_tensors(const std::string& path) {
  checkpoint::MappedFile file = taken(checkpoint::MappedFile::open(path));
  checkpoint::Header header = taken(checkpoint::parse_safetensors(file.bytes(), file.path()));
  return {std::move(file), std::move(header)};
}

struct TensorDifference {
  uint64_t bytes = 0;    // that differ
  uint64_t element = 0;  // the first that does
  double largest = 0;    // float32: |difference|; infinite where one side is no number
};

TensorDifference difference_of(const checkpoint::TensorEntry& tensor, std::span<const std::byte> a,
                               std::span<const std::byte> b) {
  TensorDifference result;
  const std::size_t bits = checkpoint::dtype_bits(tensor.dtype);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (result.bytes == 0) result.element = i * 8 / bits;
    ++result.bytes;
  }
  if (tensor.dtype != checkpoint::Dtype::kF32 || result.bytes == 0) return result;
  for (std::size_t i = 0; i + 4 <= a.size(); i += 4) {
    if (std::memcmp(a.data() + i, b.data() + i, 4) == 0) continue;
    float x = 0, y = 0;
    std::memcpy(&x, a.data() + i, 4);
    std::memcpy(&y, b.data() + i, 4);
    const double d = std::fabs(static_cast<double>(x) - static_cast<double>(y));
    result.largest = std::fmax(result.largest, std::isnan(d) ? INFINITY : d);
  }
  return result;
}

std::string form(const checkpoint::TensorEntry& tensor) {
  return fmt::format("{} [{}]", checkpoint::dtype_name(tensor.dtype), fmt::join(tensor.shape, ", "));
}

// "" or why the files cannot be held against each other.
std::string mismatch(const checkpoint::Header& a, const checkpoint::Header& b) {
  for (const checkpoint::TensorEntry& tensor : a.tensors) {
    const std::string name = checkpoint::in_quotes(tensor.name);
    const checkpoint::TensorEntry* other = b.find(tensor.name);
    if (other == nullptr) return "the second file has no tensor " + name;
    if (form(tensor) != form(*other)) return fmt::format("{}: {} and {}", name, form(tensor), form(*other));
  }
  for (const checkpoint::TensorEntry& tensor : b.tensors) {
    if (a.find(tensor.name) == nullptr) {
      return "the first file has no tensor " + checkpoint::in_quotes(tensor.name);
    }
  }
  return "";
}

}  // namespace

int compare_tensors(const CompareOptions& options) {
  const TensorFile a = open_tensors(options.first);
  const TensorFile b = open_tensors(options.second);
  if (const std::string why = mismatch(a.header, b.header); !why.empty()) {
    throw std::runtime_error("compare: expected the same tensors in both files: " + why);
  }
  bool passed = true;
  for (const checkpoint::TensorEntry& tensor : a.header.tensors) {
    const TensorDifference d = difference_of(tensor, a.bytes(tensor), b.bytes(*b.header.find(tensor.name)));
    const bool near =
        tensor.dtype == checkpoint::Dtype::kF32 && options.tolerance > 0 && d.largest <= options.tolerance;
    const bool ok = d.bytes == 0 || near;
    passed = passed && ok;
    if (options.json) {
      nlohmann::ordered_json line = {{"tensor", tensor.name},
                                     {"dtype", checkpoint::dtype_name(tensor.dtype)},
                                     {"shape", tensor.shape},
                                     {"differing_bytes", d.bytes},
                                     {"first_element", nullptr},
                                     {"max_abs", nullptr},
                                     {"passed", ok}};
      if (d.bytes > 0) line["first_element"] = d.element;
      if (tensor.dtype == checkpoint::Dtype::kF32) line["max_abs"] = d.largest;
      fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    } else if (d.bytes > 0) {
      fmt::print("{} {}: {} bytes differ, first element {}", checkpoint::in_quotes(tensor.name), form(tensor), d.bytes,
                 d.element);
      if (tensor.dtype == checkpoint::Dtype::kF32) fmt::print(", max |difference| {:.9g}", d.largest);
      fmt::print("\n");
    }
  }
  if (a.header.metadata != b.header.metadata) complain("compare: the files' metadata differ");
  if (!options.json) {
    fmt::print("{} tensors  {}\n", a.header.tensors.size(),
               paint(passed ? Colour::kGreen : Colour::kRed, passed ? "pass" : "FAIL"));
  }
  return passed ? kOk : kFailed;
}

}  // namespace isobit::cli
