// Result lines of `isobit bench` and of the peers' programs, as tables and plots need them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace isobit::cli {

struct ResultLine {
  std::string op, label, device, peer, peer_version, command, date;  // label: kernel, shape, dtype and what else tells
  double median_us = 0, p20_us = 0, p80_us = 0;
  double bytes = 0, flops = 0;
  double peer_median_us = 0;  // 0 without a peer
  double ratio() const { return median_us / peer_median_us; }
  double gb_per_s() const { return bytes / median_us * 1e-3; }
  double tflop_per_s() const { return flops / median_us * 1e-6; }
};

// The timings of one operator in one file (or one run), in the order in which they stand.
struct ResultGroup {
  std::string source;  // "2026-11-30-h200/nvfp4_geglu", or "run"
  std::string op;
  std::vector<ResultLine> lines;
  std::string name() const;  // of the group's files: letters, digits, '-' and '_'
};

struct ResultLines {
  std::vector<ResultGroup> groups;
  size_t skipped = 0;  // lines that are no timings

  // One JSON object of a file or run; skips what is no timing.
  void add(const std::string& source, const nlohmann::ordered_json& object);
  // A file of JSON lines, or a report of `isobit selftest`. Throws std::invalid_argument if it cannot be read or
  // parsed.
  void add_file(const std::string& path);
};

}  // namespace isobit::cli
