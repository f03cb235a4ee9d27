#include "bench/report/page.h"

#include <fmt/format.h>
#include <isobit/isobit.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "bench/report/plot.h"

namespace isobit::cli {
namespace {

constexpr const char* kHead =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>isobit bench</title>\n"
    "<style>body{font:14px/1.5 sans-serif;margin:2rem auto;max-width:1020px;padding:0 "
    "1rem;color:#2a2a2a;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0;width:100%}th,td{padding:2px 8px;border-bottom:1px solid #ddd;"
    "text-align:right}th:first-child,td:first-child,td.text{text-align:left}svg{max-width:100%;height:auto}"
    ".wide{overflow-x:auto}code{font-size:12px}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#16181c}th,td{border-color:#4a4a4a}a{color:#8ab4f8}}"
    "</style></head><body>\n";

std::string cell(double value, int digits) {
  return value > 0 ? fmt::format("<td>{:.{}f}</td>", value, digits) : "<td></td>";
}

std::string table_of(const ResultGroup& group) {
  std::string out =
      "<div class=\"wide\"><table><thead><tr><th>case</th><th>median &micro;s</th><th>p20</th><th>p80</th><th>GB/s</th>"
      "<th>TFLOP/s</th><th>peer</th><th>peer &micro;s</th><th>ratio</th></tr></thead><tbody>\n";
  for (const ResultLine& line : group.lines) {
    out += fmt::format("<tr title=\"{}\"><td>{}</td>", escape_markup(line.command), escape_markup(line.label)) +
           cell(line.median_us, 2) + cell(line.p20_us, 2) + cell(line.p80_us, 2) + cell(line.gb_per_s(), 1) +
           cell(line.tflop_per_s(), 3);
    if (line.peer_median_us > 0) {
      const std::string peer = line.peer + (line.peer_version.empty() ? "" : " " + line.peer_version);
      out += fmt::format("<td class=\"text\">{}</td>", escape_markup(peer)) + cell(line.peer_median_us, 2) +
             cell(line.ratio(), 3);
    } else {
      out += "<td></td><td></td><td></td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string section_of(const ResultGroup& group) {
  const ResultLine& first = group.lines.front();
  return fmt::format(
      "<section id=\"{0}\"><h2>{1}</h2><p>{2} timings of {3}, {4}</p>\n<figure>{5}</figure><figure>{6}"
      "</figure>\n{7}<p>The first line again: <code>{8}</code></p></section>\n",
      group.name(), escape_markup(group.op), group.lines.size(), escape_markup(first.device),
      escape_markup(group.source), ratio_plot(group), speed_plot(group), table_of(group), escape_markup(first.command));
}

void write_file(const char* option, const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::trunc);
  file << content << std::flush;
  if (!file) throw std::invalid_argument(fmt::format("{}: cannot write \"{}\"", option, path));
}

}  // namespace

std::string page_of(const ResultLines& results) {
  std::string out = kHead;
  out += fmt::format(
      "<h1>isobit bench</h1><p>{}</p><p>A ratio is the kernel's median over the peer's: below 1 is "
      "faster. A row's tooltip repeats it.</p>\n<ul>\n",
      escape_markup(isobit_build_info()));
  for (const ResultGroup& group : results.groups) {
    out += fmt::format("<li><a href=\"#{}\">{}</a>, {}</li>\n", group.name(), escape_markup(group.op),
                       escape_markup(group.source));
  }
  out += "</ul>\n";
  if (results.skipped > 0) out += fmt::format("<p>{} lines that are no timings were left out.</p>\n", results.skipped);
  for (const ResultGroup& group : results.groups) out += section_of(group);
  return out + "</body></html>\n";
}

void write_page(const std::string& path, const ResultLines& results) { write_file("--report", path, page_of(results)); }

void write_plots(const std::string& folder, const ResultLines& results) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const ResultGroup& group : results.groups) {
    const std::string stem = folder + "/" + group.name();
    if (const std::string svg = ratio_plot(group); !svg.empty()) write_file("--svg", stem + "-ratio.svg", svg);
    if (const std::string svg = speed_plot(group); !svg.empty()) write_file("--svg", stem + "-speed.svg", svg);
  }
}

}  // namespace isobit::cli
