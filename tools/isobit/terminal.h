// What a person sees: tables on stdout, complaints and a progress line on stderr.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace isobit::cli {

bool stdout_is_terminal();
// A terminal, and the user has not set NO_COLOR.
bool stdout_has_colour();

// "isobit: TEXT" on stderr.
void complain_text(const std::string& text);
template <class... T>
void complain(fmt::format_string<T...> format, T&&... values) {
  complain_text(fmt::format(format, std::forward<T>(values)...));
}

enum class Colour { kPlain, kGreen, kRed };
std::string paint(Colour colour, const std::string& text);

// Columns aligned with two spaces between them; numbers (cells that start with a digit) to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// One line on stderr that is rewritten; silent unless stderr is a terminal.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& what, long done, long total);
  void clear();

 private:
  bool on_;
  bool shown_ = false;
};

}  // namespace isobit::cli
