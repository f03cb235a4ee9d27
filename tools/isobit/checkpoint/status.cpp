#include "checkpoint/status.h"

namespace isobit::checkpoint {

std::string in_quotes(const std::string& text) {
  constexpr std::size_t kShown = 120;
  constexpr char kHex[] = "0123456789abcdef";
  std::string shown = "\"";
  std::size_t end = text.size() < kShown ? text.size() : kShown;
  // A cut inside a UTF-8 sequence would print half a character.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  for (std::size_t i = 0; i < end; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080..U+009F are control characters too; terminals obey some of them (0xC2 0x9B starts an escape sequence).
    const bool c1_control = byte == 0xC2 && i + 1 < end && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (byte < 0x20 || byte == 0x7F || c1_control) {
      shown += "\\x";
      shown += kHex[byte >> 4];
      shown += kHex[byte & 15];
      if (c1_control) {
        const auto next = static_cast<unsigned char>(text[++i]);
        shown += "\\x";
        shown += kHex[next >> 4];
        shown += kHex[next & 15];
      }
    } else {
      if (byte == '"' || byte == '\\') shown += '\\';
      shown += static_cast<char>(byte);
    }
  }
  shown += end < text.size() ? "...\"" : "\"";
  return shown;
}

std::string shown_path(const std::string& path) {
  const std::string shown = in_quotes(path);
  return shown.size() == path.size() + 2 ? path : shown;
}

Status refuse(const std::string& file, const std::string& subject, const std::string& rule, const std::string& expected,
              const std::string& got) {
  const std::string where = subject.empty() ? file : file + ": " + subject;
  return Status{where + ": " + rule + ": expected " + expected + ", got " + got};
}

}  // namespace isobit::checkpoint
