#pragma once

#include <string>
#include <utility>
#include <variant>

namespace isobit::checkpoint {

// Outcome of reading or writing a file: empty message means success. A message is one line that names the file, the
// tensor where there is one, the rule, what was expected and what was found; the caller prints it and exits with 2.
struct Status {
  std::string message;

  bool ok() const { return message.empty(); }
};

// A value or the reason why there is none. Reading `*result` without ok() is a programming error.
template <class T>
class Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Status error) : state_(std::move(error)) {}

  bool ok() const { return std::holds_alternative<T>(state_); }
  const Status& status() const { return std::get<Status>(state_); }
  T& operator*() { return std::get<T>(state_); }
  const T& operator*() const { return std::get<T>(state_); }
  T* operator->() { return &std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }

 private:
  std::variant<T, Status> state_;
};

// Text from a file as it may be shown on one line of a terminal: in double quotes, control characters and quotes
// escaped, cut after 120 bytes. Names in untrusted files may hold newlines and terminal escape sequences.
std::string in_quotes(const std::string& text);

// A path as the caller wrote it, unless it would break the line: then quoted.
std::string shown_path(const std::string& path);

// `file: subject: rule: expected E, got G`; an empty subject is left out.
Status refuse(const std::string& file, const std::string& subject, const std::string& rule, const std::string& expected,
              const std::string& got);

}  // namespace isobit::checkpoint
