// Two files of `isobit bench`: cases of the same operator, kernel, shape, dtype and device side by side.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "command.h"
#include "compare/compare.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

using Json = nlohmann::ordered_json;

// Device, threads and cache state are part of a case: times of different ones are not comparable.
std::string key_of(const Json& line) {
  std::string key;
  for (const char* field : {"op", "kernel", "shape", "dtype", "gpu", "cpu", "threads", "warm"}) {
    key += line.value(field, Json()).dump() + " ";
  }
  return key;
}

// Whether a line has what a comparison reads. Nobody vouches for the file.
bool is_result(const Json& line) {
  if (!line.is_object()) return false;
  for (const char* field : {"op", "kernel", "dtype"}) {
    if (!line.contains(field) || !line[field].is_string()) return false;
  }
  for (const char* field : {"p20_us", "p80_us"}) {
    if (line.contains(field) && !line[field].is_number()) return false;
  }
  return line.contains("shape") && line.contains("median_us") && line["median_us"].is_number() &&
         line["median_us"].get<double>() > 0;
}

std::map<std::string, Json> read_results(const std::string& path) {
  std::map<std::string, Json> results;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    const Json object = Json::parse(line, nullptr, false);
    if (!is_result(object)) {
      throw std::runtime_error(fmt::format("\"{}\": expected lines of `isobit bench`", path));
    }
    results[key_of(object)] = object;
  }
  return results;
}

// Faster or slower only if the middle 60 % of the samples do not overlap.
const char* verdict(const Json& first, const Json& second) {
  const auto low = [](const Json& line) { return line.value("p20_us", line["median_us"].get<double>()); };
  const auto high = [](const Json& line) { return line.value("p80_us", line["median_us"].get<double>()); };
  if (high(second) < low(first)) return "faster";
  return low(second) > high(first) ? "slower" : "same";
}

}  // namespace

int compare_results(const CompareOptions& options) {
  const std::map<std::string, Json> first = read_results(options.first);
  const std::map<std::string, Json> second = read_results(options.second);
  Table table({"operator", "kernel", "shape", "dtype", "first us", "second us", "ratio", "verdict"});
  size_t matched = 0;
  size_t failed = 0;
  for (const auto& [key, a] : first) {
    const auto found = second.find(key);
    if (found == second.end()) continue;
    const Json& b = found->second;
    ++matched;
    const double ratio = b["median_us"].get<double>() / a["median_us"].get<double>();
    const std::string word = verdict(a, b);
    if (options.max_slower >= 0 && word == "slower" && ratio > 1 + options.max_slower / 100) ++failed;
    if (options.json) {
      fmt::print("{}\n", Json({{"op", a["op"]},
                               {"kernel", a["kernel"]},
                               {"shape", a["shape"]},
                               {"dtype", a["dtype"]},
                               {"first_us", a["median_us"]},
                               {"second_us", b["median_us"]},
                               {"ratio", ratio},
                               {"verdict", word}})
                             .dump());
    } else {
      table.add({a["op"], a["kernel"], a["shape"].dump(), a["dtype"],
                 fmt::format("{:.1f}", a["median_us"].get<double>()),
                 fmt::format("{:.1f}", b["median_us"].get<double>()), fmt::format("{:.3f}", ratio), word});
    }
  }
  if (matched == 0) throw std::runtime_error("compare: the files have no case in common");
  if (!options.json) fmt::print("{}", table.text());
  if (matched < first.size() || matched < second.size()) {
    complain("{} and {} cases have no partner", first.size() - matched, second.size() - matched);
  }
  return failed > 0 ? kFailed : kOk;
}

}  // namespace isobit::cli
