#include "terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

namespace isobit::cli {

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }

bool stdout_has_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return stdout_is_terminal() && (no_colour == nullptr || no_colour[0] == '\0');
}

void complain_text(const std::string& text) { fmt::print(stderr, "isobit: {}\n", text); }

std::string paint(Colour colour, const std::string& text) {
  if (colour == Colour::kPlain || !stdout_has_colour()) return text;
  return fmt::format("\033[{}m{}\033[0m", colour == Colour::kGreen ? 32 : 31, text);
}

std::string Table::text() const {
  std::vector<size_t> width;
  for (const auto& row : rows_) {
    width.resize(std::max(width.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool number = !row[i].empty() && std::isdigit(static_cast<unsigned char>(row[i][0])) != 0 &&
                          row[i].find(", ") == std::string::npos;
      line += number ? fmt::format("{:>{}}", row[i], width[i]) : fmt::format("{:<{}}", row[i], width[i]);
      if (i + 1 < row.size()) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

Progress::Progress(bool quiet) : on_(!quiet && isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& what, long done, long total) {
  if (!on_) return;
  constexpr long kWidth = 24;
  const long filled = total > 0 ? kWidth * done / total : 0;
  fmt::print(stderr, "\r\033[K[{:#<{}}{:.<{}}] {}/{} {}", "", filled, "", kWidth - filled, done, total, what);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace isobit::cli
