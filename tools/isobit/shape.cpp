#include "shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

namespace isobit::cli {
namespace {

constexpr int64_t kMostSizes = 100'000;  // of one range

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

int64_t parse_size(const std::string& text, const std::string& word) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) {
    throw std::invalid_argument(fmt::format("--shape: expected LETTER=SIZE[,SIZE...], got \"{}\"", word));
  }
  return value;
}

// "784" or "784:968:32".
void append_range(const std::string& text, const std::string& word, std::vector<int64_t>* sizes) {
  const std::vector<std::string> parts = split(text, ':');
  const int64_t first = parse_size(parts[0], word);
  const int64_t last = parts.size() > 1 ? parse_size(parts[1], word) : first;
  const int64_t step = parts.size() > 2 ? parse_size(parts[2], word) : 1;
  if (parts.size() > 3 || step == 0) {
    throw std::invalid_argument(fmt::format("--shape: expected first:last:step, got \"{}\"", word));
  }
  if (last >= first && (last - first) / step >= kMostSizes) {
    throw std::invalid_argument(fmt::format("--shape: expected at most {} sizes, got \"{}\"", kMostSizes, word));
  }
  for (int64_t size = first; size <= last; size += std::min(step, last - size + 1)) sizes->push_back(size);
}

}  // namespace

ShapeLists parse_shapes(const std::vector<std::string>& words) {
  ShapeLists lists;
  for (const std::string& word : words) {
    std::string letter;
    for (const std::string& part : split(word, ',')) {
      const size_t equals = part.find('=');
      if (equals != std::string::npos) letter = part.substr(0, equals);
      append_range(equals == std::string::npos ? part : part.substr(equals + 1), word, &lists[letter]);
    }
    if (lists.contains("")) {
      throw std::invalid_argument(fmt::format("--shape: expected LETTER=SIZE[,SIZE...], got \"{}\"", word));
    }
  }
  return lists;
}

std::vector<Shape> combine(const ShapeLists& lists, const std::vector<std::string>& letters, const Shape& defaults) {
  for (const auto& [letter, sizes] : lists) {
    if (std::find(letters.begin(), letters.end(), letter) == letters.end()) {
      throw std::invalid_argument(
          fmt::format("--shape: expected letters {}, got \"{}\"", fmt::join(letters, " "), letter));
    }
  }
  std::vector<Shape> shapes(1);
  for (const std::string& letter : letters) {
    const auto found = lists.find(letter);
    const std::vector<int64_t> sizes = found == lists.end() ? std::vector<int64_t>{defaults.at(letter)} : found->second;
    std::vector<Shape> longer;
    for (const Shape& shape : shapes) {
      for (const int64_t size : sizes) {
        longer.push_back(shape);
        longer.back()[letter] = size;
      }
    }
    shapes = longer;
  }
  return shapes;
}

std::string shape_text(const Shape& shape, const std::vector<std::string>& letters) {
  std::string text;
  for (const std::string& letter : letters) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", letter, shape.at(letter));
  }
  return text;
}

}  // namespace isobit::cli
