#include "bench/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace isobit::cli {
namespace {

constexpr double kLabelWidth = 430, kPlotWidth = 480, kRight = 90, kRow = 18, kTop = 64, kBottom = 26;
constexpr double kWidth = kLabelWidth + kPlotWidth + kRight;
constexpr double kMemoryBound = 32;  // operations a byte, under which bytes are what counts

// Told apart without red against green, on light and on dark.
constexpr const char* kColours[] = {"#2a78d6", "#e07b00", "#7a4fc4", "#00897b", "#c2185b", "#7d6b00"};

constexpr const char* kStyle =
    "<style>.isobit text{font:12px sans-serif;fill:#2a2a2a}.isobit .title{font-size:14px;font-weight:bold}"
    ".isobit .quiet{fill:#6a6a6a}.isobit .grid{stroke:#ddd}.isobit .one{stroke:#8a8a8a;stroke-dasharray:4 3}"
    "@media(prefers-color-scheme:dark){.isobit text{fill:#ddd}.isobit .quiet{fill:#aaa}.isobit .grid{stroke:#4a4a4a}}"
    "</style>";

class Drawing {
 public:
  Drawing(const std::string& title, size_t rows) : height_(kTop + kRow * static_cast<double>(rows) + kBottom) {
    body_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"isobit\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" role=\"img\"><title>{}</title>{}",
        kWidth, height_, kWidth, height_, escape_markup(title), kStyle);
    text(0, 18, "title", title);
  }
  double bottom() const { return height_ - kBottom; }
  double row_middle(size_t row) const { return kTop + kRow * (static_cast<double>(row) + 0.5); }
  void text(double x, double y, const char* kind, const std::string& words, const char* anchor = "start") {
    body_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", kind, x, y,
                         anchor, escape_markup(words));
  }
  void vertical(double x, const char* kind) {
    body_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kind, x, x,
                         kTop, bottom());
  }
  void bar(double y, double width, const char* colour) {
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>",
                         kLabelWidth, y - kRow * 0.35, std::max(width, 1.0), kRow * 0.7, colour);
  }
  void whisker(double y, double x1, double x2) {
    body_ +=
        fmt::format("<line stroke=\"#5a5a5a\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", x1, x2, y, y);
  }
  void dot(double x, double y, const char* colour, const std::string& tip) {
    body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"><title>{}</title></circle>", x, y,
                         colour, escape_markup(tip));
  }
  std::string finish() { return body_ + "</svg>\n"; }

 private:
  double height_;
  std::string body_;
};

template <class List, class T>
size_t place_in(List* list, const T& value) {
  const auto found = std::find(list->begin(), list->end(), value);
  if (found != list->end()) return static_cast<size_t>(found - list->begin());
  list->push_back(value);
  return list->size() - 1;
}

std::string where(const ResultGroup& group) {
  const ResultLine& line = group.lines.front();
  return line.device + (line.date.empty() ? "" : ", " + line.date);
}

// 1, 2 or 5 times a power of ten, about `most` of them up to the largest.
double tick_of(double largest, int most) {
  double tick = std::pow(10.0, std::floor(std::log10(largest)));
  for (const double part : {0.1, 0.2, 0.5, 1.0}) {
    if (largest / (tick * part) <= most) return tick * part;
  }
  return tick;
}

}  // namespace

std::string escape_markup(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string ratio_plot(const ResultGroup& group) {
  std::vector<std::string> labels, peers;
  double low = 0.5, high = 2;
  for (const ResultLine& line : group.lines) {
    if (line.peer_median_us <= 0) continue;
    place_in(&labels, line.label);
    place_in(&peers, line.peer);
    low = std::min(low, line.ratio() / 1.1);
    high = std::max(high, line.ratio() * 1.1);
  }
  if (labels.empty()) return "";
  Drawing drawing(fmt::format("{}: time over the peer's, left of 1 is faster ({})", group.op, where(group)),
                  labels.size());
  const auto x_of = [&](double ratio) {
    return kLabelWidth + kPlotWidth * std::log(ratio / low) / std::log(high / low);
  };
  for (double tick = 1.0 / 64; tick <= 64; tick *= 2) {
    if (tick < low || tick > high) continue;
    drawing.vertical(x_of(tick), tick == 1.0 ? "one" : "grid");
    drawing.text(x_of(tick), drawing.bottom() + 16, "quiet", fmt::format("{:.3g}", tick), "middle");
  }
  double legend = kLabelWidth;
  for (size_t i = 0; i < peers.size(); ++i) {
    drawing.dot(legend, 42, kColours[i % std::size(kColours)], peers[i]);
    drawing.text(legend + 10, 46, "quiet", peers[i]);
    legend += 30 + 7.0 * static_cast<double>(peers[i].size());
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    drawing.text(kLabelWidth - 8, drawing.row_middle(i) + 4, "", labels[i], "end");
  }
  for (const ResultLine& line : group.lines) {
    if (line.peer_median_us <= 0) continue;
    drawing.dot(x_of(line.ratio()), drawing.row_middle(place_in(&labels, line.label)),
                kColours[place_in(&peers, line.peer) % std::size(kColours)],
                fmt::format("{}: {:.3g} us, {} {:.3g} us, ratio {:.3f}", line.label, line.median_us, line.peer,
                            line.peer_median_us, line.ratio()));
  }
  return drawing.finish();
}

std::string speed_plot(const ResultGroup& group) {
  std::vector<const ResultLine*> rows;  // one a label: peers repeat a kernel's own time
  std::vector<std::string> labels;
  double bytes = 0, flops = 0;
  for (const ResultLine& line : group.lines) {
    if (line.bytes <= 0 || place_in(&labels, line.label) != rows.size()) continue;
    rows.push_back(&line);
    bytes += line.bytes;
    flops += line.flops;
  }
  if (rows.empty()) return "";
  const bool memory = flops < kMemoryBound * bytes;
  const auto speed = [&](const ResultLine& line, double us) { return (memory ? line.bytes : line.flops) / us * 1e-6; };
  double largest = 0;
  for (const ResultLine* line : rows) largest = std::max(largest, speed(*line, line->median_us));
  if (largest <= 0) return "";
  const double scale = kPlotWidth / (largest * 1.02);
  Drawing drawing(fmt::format("{}: {} ({})", group.op, memory ? "TB/s" : "TFLOP/s", where(group)), rows.size());
  const double tick = tick_of(largest, 8);
  for (double value = 0; value <= largest; value += tick) {
    drawing.vertical(kLabelWidth + value * scale, "grid");
    drawing.text(kLabelWidth + value * scale, drawing.bottom() + 16, "quiet", fmt::format("{:.3g}", value), "middle");
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const ResultLine& line = *rows[i];
    const double y = drawing.row_middle(i);
    const auto at = [&](double us) { return kLabelWidth + std::min(speed(line, us) * scale, kPlotWidth + kRight); };
    drawing.text(kLabelWidth - 8, y + 4, "", line.label, "end");
    drawing.bar(y, speed(line, line.median_us) * scale, kColours[0]);
    drawing.whisker(y, at(line.p80_us), at(line.p20_us));
    drawing.text(std::max(at(line.p20_us), at(line.median_us)) + 6, y + 4, "quiet",
                 fmt::format("{:.3g}", speed(line, line.median_us)));
  }
  return drawing.finish();
}

}  // namespace isobit::cli
