// Arrays of words as one string of hexadecimal digits, highest digit of a word first.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace isobit::cli {

template <class T>
std::string hex_of(std::span<const T> values) {
  using Word = std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>>;
  std::string out;
  out.reserve(values.size() * 2 * sizeof(T));
  for (const T value : values) {
    const uint32_t word = std::bit_cast<Word>(value);
    for (int shift = 8 * static_cast<int>(sizeof(T)) - 4; shift >= 0; shift -= 4) {
      out += "0123456789abcdef"[word >> shift & 15];
    }
  }
  return out;
}

}  // namespace isobit::cli
