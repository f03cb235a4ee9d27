#include "check/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace isobit::cli {

void CheckReport::add(const CheckResult& result) {
  progress_.clear();
  const bool passed = result.passed();
  (passed ? passed_ : failed_) += 1;
  if (json_) {
    nlohmann::ordered_json line = {{"op", result.op},  {"kernel", result.kernel},     {"name", result.name},
                                   {"passed", passed}, {"compared", result.compared}, {"differing", result.differing}};
    if (result.worst >= 0) {
      line["worst"] = result.worst;
      line["bound"] = result.bound;
    }
    if (!result.first.empty()) line["first"] = result.first;
    fmt::print("{}\n", line.dump());
  } else {
    const std::string mark = paint(passed ? Colour::kGreen : Colour::kRed, passed ? "pass" : "FAIL");
    fmt::print("{}  {} {}: {}; {} compared, {} differ", mark, result.op, result.kernel, result.name, result.compared,
               result.differing);
    if (result.worst >= 0) fmt::print(", worst error {:.3g} of {:.3g}", result.worst, result.bound);
    if (!result.first.empty()) fmt::print("\n      first: {}", result.first);
    fmt::print("\n");
  }
  std::fflush(stdout);
}

void CheckReport::finish() {
  progress_.clear();
  if (!json_) fmt::print("{} passed, {} failed\n", passed_, failed_);
}

}  // namespace isobit::cli
