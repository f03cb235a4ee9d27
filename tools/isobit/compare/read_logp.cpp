#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "compare/compare.h"

namespace isobit::cli {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw std::runtime_error(fmt::format("\"{}\": {}", path, why));
}

// Text between `key` and the end of its value in the header's dictionary.
std::string header_value(const std::string& header, const std::string& key, char last) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) return "";
  const size_t begin = header.find_first_not_of(' ', at + key.size() + 3);
  if (begin == std::string::npos) return "";
  return header.substr(begin, header.find(last, begin) - begin + 1);
}

// "(3, 4)"; a number that 64 bits do not hold is the largest one.
std::vector<size_t> parse_dimensions(const std::string& text) {
  std::vector<size_t> sizes;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    size_t size = 0;
    const auto [stop, error] = std::from_chars(at, end, size);
    if (stop == at) {
      ++at;
      continue;
    }
    sizes.push_back(error == std::errc() ? size : SIZE_MAX);
    at = stop;
  }
  return sizes;
}

LogpFile parse_npy(const std::string& path, const std::string& bytes) {
  const size_t length_bytes = bytes.size() > 6 && bytes[6] == 1 ? 2 : 4;
  uint32_t header_length = 0;
  if (bytes.size() < 8 + length_bytes) refuse(path, "not a whole .npy file");
  std::memcpy(&header_length, bytes.data() + 8, length_bytes);
  const size_t data = 8 + length_bytes + header_length;
  if (bytes.size() < data) refuse(path, "not a whole .npy file");
  const std::string header = bytes.substr(8 + length_bytes, header_length);
  const std::string type = header_value(header, "descr", ',');
  const size_t width = type == "'<f4'," ? 4 : type == "'<f8'," ? 8 : 0;
  if (width == 0) refuse(path, "expected float32 or float64, got " + type);
  if (header_value(header, "fortran_order", ',') != "False,") refuse(path, "expected C order");
  const std::vector<size_t> sizes = parse_dimensions(header_value(header, "shape", ')'));
  if (sizes.empty() || sizes.size() > 2) refuse(path, fmt::format("expected 1 or 2 dimensions, got {}", sizes.size()));
  LogpFile file;
  file.columns = sizes.size() == 2 && sizes[1] > 0 ? sizes[1] : 1;
  const size_t held = (bytes.size() - data) / width;
  if (sizes[0] > held / file.columns) refuse(path, "not a whole .npy file");
  const size_t count = sizes[0] * (sizes.size() == 2 ? sizes[1] : 1);
  for (size_t i = 0; i < count; ++i) {
    double wide = 0;
    float narrow = 0;
    if (width == 8) {
      std::memcpy(&wide, bytes.data() + data + 8 * i, 8);
      narrow = static_cast<float>(wide);
    } else {
      std::memcpy(&narrow, bytes.data() + data + 4 * i, 4);
    }
    file.values.push_back(narrow);
  }
  return file;
}

LogpFile parse_text(const std::string& path, const std::string& bytes) {
  LogpFile file;
  std::istringstream lines(bytes);
  size_t columns = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    size_t found = 0;
    for (std::string word; words >> word; ++found) {
      char* end = nullptr;
      file.values.push_back(std::strtof(word.c_str(), &end));
      if (*end != '\0') refuse(path, "expected a number, got \"" + word + "\"");
    }
    if (found == 0) continue;
    if (columns != 0 && columns != found) refuse(path, "expected as many numbers in every line");
    columns = found;
  }
  file.columns = columns == 0 ? 1 : columns;
  return file;
}

}  // namespace

LogpFile read_logp(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  LogpFile file = bytes.starts_with("\x93NUMPY") ? parse_npy(path, bytes) : parse_text(path, bytes);
  if (file.values.empty()) refuse(path, "expected at least one number, got none");
  return file;
}

}  // namespace isobit::cli
