// Kernels with one mistake planted in their PTX, and what has to notice it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isobit::ptx::test {

struct Mutant {
  const char* name;
  const char* find;     // in the kernel's text
  int occurrence;       // from 1
  const char* replace;  // of what was found, up to and with the ';' if `find` does not hold one
  const char* caught;   // kind of the first finding, "values" for other bytes, "survives" for a known blind spot
  const char* before = nullptr;  // if given, the last occurrence before this text counts instead
};

// The kernel's text with the mistake; empty if the pattern is not there so often.
inline std::optional<std::string> planted(const std::string& text, const Mutant& m) {
  size_t at = std::string::npos, from = 0;
  if (m.before) {
    const size_t anchor = text.find(m.before);
    if (anchor != std::string::npos) at = text.rfind(m.find, anchor);
    if (at == std::string::npos) return std::nullopt;
  }
  for (int i = 0; i < (m.before ? 0 : m.occurrence); ++i) {
    at = text.find(m.find, from);
    if (at == std::string::npos) return std::nullopt;
    from = at + 1;
  }
  const std::string_view pattern = m.find;
  size_t end = at + pattern.size();
  if (pattern.find(';') == std::string_view::npos && pattern.back() != ' ') end = text.find(';', at) + 1;
  return text.substr(0, at) + m.replace + text.substr(end);
}

// What stands before the first kernel of a module, followed by the one kernel whose name holds `part`.
inline std::string only_kernel(const std::string& text, const std::string& part) {
  const std::string mark = ".visible .entry ";
  const size_t first = text.find(mark);
  for (size_t at = first; at != std::string::npos; at = text.find(mark, at + 1)) {
    const size_t line_end = text.find('(', at);
    if (text.substr(at, line_end - at + 1).find(part) == std::string::npos) continue;
    size_t end = text.find(mark, at + 1);
    if (end == std::string::npos) end = text.find("\n\t.file", at);
    return text.substr(0, first) + text.substr(at, end == std::string::npos ? end : end - at);
  }
  return {};
}

}  // namespace isobit::ptx::test
