#include "checkpoint/json_walk.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

namespace isobit::checkpoint {
namespace {

const std::string kNoText;

// Bounds the memory spent on names: the largest published checkpoints have some ten thousand tensors a file.
constexpr std::size_t kMaxNames = std::size_t{1} << 20;

// Adapter between the JSON library's callbacks and JsonEvent. A callback that returns false ends the parse.
class Walker : public nlohmann::json_sax<nlohmann::json> {
 public:
  Walker(const std::string& file, std::size_t max_depth, const std::function<Status(const JsonEvent&)>& visit)
      : file_(file), max_depth_(max_depth), visit_(visit) {}

  const Status& status() const { return status_; }

  bool null() override { return emit(JsonKind::kNull, kNoText, 0, false); }
  bool boolean(bool value) override { return emit(JsonKind::kBool, kNoText, 0, value); }
  bool number_integer(number_integer_t value) override {
    return emit(JsonKind::kNegative, std::to_string(value), 0, false);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return emit(JsonKind::kUnsigned, std::to_string(value), value, false);
  }
  bool number_float(number_float_t, const string_t& written) override {
    return emit(JsonKind::kReal, written, 0, false);
  }
  bool string(string_t& value) override { return emit(JsonKind::kString, value, 0, false); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(JsonKind::kBeginObject); }
  bool end_object() override { return close(JsonKind::kEndObject); }
  bool start_array(std::size_t) override { return open(JsonKind::kBeginArray); }
  bool end_array() override { return close(JsonKind::kEndArray); }

  bool key(string_t& name) override {
    auto& names = names_.back();
    if (!names.insert(name).second) {
      const std::string parent = path_.size() < 2 ? "" : "in " + in_quotes(path_[path_.size() - 2]) + ": ";
      status_ =
          refuse(file_, parent + "key " + in_quotes(name), "names inside one object", "each name once", "it twice");
      return false;
    }
    if (names.size() > kMaxNames) {
      status_ = refuse(file_, "", "names inside one object", "at most " + std::to_string(kMaxNames), "more");
      return false;
    }
    path_.back() = name;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    status_ =
        refuse(file_, "", "JSON text", "well-formed JSON in UTF-8", "an error at byte " + std::to_string(position));
    return false;
  }

 private:
  bool emit(JsonKind kind, const std::string& text, std::uint64_t number, bool flag) {
    status_ = visit_(JsonEvent{kind, path_, text, number, flag});
    return status_.ok();
  }

  bool open(JsonKind kind) {
    if (names_.size() == max_depth_) {
      status_ =
          refuse(file_, "", "nesting of JSON values", "at most " + std::to_string(max_depth_) + " levels", "more");
      return false;
    }
    if (!emit(kind, kNoText, 0, false)) return false;
    names_.emplace_back();
    path_.emplace_back();
    return true;
  }

  bool close(JsonKind kind) {
    names_.pop_back();
    path_.pop_back();
    return emit(kind, kNoText, 0, false);
  }

  const std::string& file_;
  std::size_t max_depth_;
  const std::function<Status(const JsonEvent&)>& visit_;
  // One entry for each open object or array: the keys seen in it, and the key under which the walk stands.
  std::vector<std::unordered_set<std::string>> names_;
  std::vector<std::string> path_;
  Status status_;
};

}  // namespace

Status walk_json(std::span<const std::byte> text, const std::string& file, std::size_t max_depth,
                 const std::function<Status(const JsonEvent&)>& visit) {
  const char* begin = reinterpret_cast<const char*>(text.data());
  const std::string_view view(begin, text.size());
  // The JSON library takes a zero byte for the end of its input; what follows would go unread.
  if (const auto zero = view.find('\0'); zero != std::string_view::npos) {
    return refuse(file, "", "JSON text", "no zero byte", "one at byte " + std::to_string(zero));
  }
  Walker walker(file, max_depth, visit);
  const bool done = nlohmann::json::sax_parse(view.begin(), view.end(), &walker);
  if (!done && walker.status().ok())
    return refuse(file, "", "JSON text", "well-formed JSON in UTF-8", "something else");
  return walker.status();
}

std::string describe(const JsonEvent& event) {
  switch (event.kind) {
    case JsonKind::kBeginObject:
    case JsonKind::kEndObject:
      return "an object";
    case JsonKind::kBeginArray:
    case JsonKind::kEndArray:
      return "an array";
    case JsonKind::kString:
      return "the string " + in_quotes(event.text);
    case JsonKind::kUnsigned:
    case JsonKind::kNegative:
    case JsonKind::kReal:
      return "the number " + event.text.substr(0, 24);
    case JsonKind::kBool:
      return event.flag ? "true" : "false";
    case JsonKind::kNull:
      return "null";
  }
  return "something else";
}

}  // namespace isobit::checkpoint
