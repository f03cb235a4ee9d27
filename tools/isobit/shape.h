// --shape N=1,7,128 H=64: letters to lists of sizes, and every combination of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace isobit::cli {

using Shape = std::map<std::string, int64_t>;
using ShapeLists = std::map<std::string, std::vector<int64_t>>;

// Reads "N=1,7", "M=784:968:32" (first:last:step, last included) and "N=1,H=2" (several letters in one word). Throws
// std::invalid_argument with a message that names the word.
ShapeLists parse_shapes(const std::vector<std::string>& words);

// Every combination, in the order of `letters`; a letter that `lists` lacks takes its value from `defaults`. A letter
// outside `letters` throws std::invalid_argument.
std::vector<Shape> combine(const ShapeLists& lists, const std::vector<std::string>& letters, const Shape& defaults);

// "N=1,H=64,V=512" in the order of `letters`.
std::string shape_text(const Shape& shape, const std::vector<std::string>& letters);

}  // namespace isobit::cli
