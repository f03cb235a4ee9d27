#include "core/status.h"

#include <cstdarg>
#include <cstdio>

namespace isobit {
namespace {

constexpr size_t kMessageSize = 4096;
thread_local char message[kMessageSize];

}  // namespace

Status fail(isobit_status code, const char* format, ...) {
  // Formatted aside first: an argument may point into the message that is being replaced.
  char text[kMessageSize];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::snprintf(message, sizeof message, "%s", text);
  return Status(code);
}

Status refuse(const char* argument, const char* expected, const char* got_format, ...) {
  char got[1024];
  va_list arguments;
  va_start(arguments, got_format);
  std::vsnprintf(got, sizeof got, got_format, arguments);
  va_end(arguments);
  return fail(ISOBIT_INVALID_ARGUMENT, "%s: expected %s, got %s", argument, expected, got);
}

const char* last_error() { return message; }

}  // namespace isobit
