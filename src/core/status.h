// Status of an internal call. The message lives in a fixed thread-local buffer, so that reporting never allocates and
// isobit_last_error() can hand out a plain pointer.
#pragma once

#include <isobit/isobit.h>

namespace isobit {

class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr explicit Status(isobit_status code) : code_(code) {}
  constexpr bool ok() const { return code_ == ISOBIT_OK; }
  constexpr isobit_status code() const { return code_; }

 private:
  isobit_status code_ = ISOBIT_OK;
};

// Sets the thread's message (printf format) and returns the status. One line; longer text is cut.
[[gnu::format(printf, 2, 3)]] Status fail(isobit_status code, const char* format, ...);

// The usual refusal: "argument: expected RULE, got FOUND".
[[gnu::format(printf, 3, 4)]] Status refuse(const char* argument, const char* expected, const char* got_format, ...);

const char* last_error();

}  // namespace isobit
