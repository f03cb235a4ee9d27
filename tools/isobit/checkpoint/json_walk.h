#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/status.h"

namespace isobit::checkpoint {

enum class JsonKind {
  kBeginObject,
  kEndObject,
  kBeginArray,
  kEndArray,
  kString,
  kUnsigned,
  kNegative,
  kReal,
  kBool,
  kNull
};

// What stands in the text, in order. `path` is the chain of keys that leads here (array elements add an empty key), so
// a reader asks for the depth and the names that it knows. Strings are valid UTF-8.
struct JsonEvent {
  JsonKind kind;
  const std::vector<std::string>& path;
  const std::string& text;  // a string's content, or a number as it was written
  std::uint64_t number;     // kUnsigned only
  bool flag;                // kBool only
};

// Walks one JSON text without building a tree, so memory stays bounded by the text, and calls `visit` for each event.
// Refuses what a tree would hide: zero bytes, keys given twice in one object, nesting deeper than `max_depth`.
// The first refusal, the walker's or the visitor's, ends the walk. `file` is only for messages.
Status walk_json(std::span<const std::byte> text, const std::string& file, std::size_t max_depth,
                 const std::function<Status(const JsonEvent&)>& visit);

// "a string", "an object", ... for messages.
std::string describe(const JsonEvent& event);

}  // namespace isobit::checkpoint
