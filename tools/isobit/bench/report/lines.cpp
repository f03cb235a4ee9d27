#include "bench/report/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "bench/record.h"

namespace isobit::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string text(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string label_of(const Json& object) {
  std::string out = text(object, "kernel");
  if (const auto shape = object.find("shape"); shape != object.end() && shape->is_object()) {
    for (const auto& [letter, size] : shape->items()) out += fmt::format(" {}={}", letter, size.dump());
  }
  if (const std::string dtype = text(object, "dtype"); !dtype.empty()) out += fmt::format(" {}", dtype);
  if (const auto outputs = object.find("outputs"); outputs != object.end()) {
    out += fmt::format(" {}", outputs->is_string() ? outputs->get<std::string>() : outputs->dump());
  }
  return out;
}

ResultLine line_of(const Json& object) {
  ResultLine line;
  line.op = text(object, "op");
  line.label = label_of(object);
  line.device = text(object, "gpu").empty() ? text(object, "cpu") : text(object, "gpu");
  line.peer = text(object, "peer");
  line.peer_version = text(object, "peer_version");
  line.command = text(object, "command");
  line.date = text(object, "date").substr(0, 10);
  line.median_us = line.p20_us = line.p80_us = number(object, "median_us");
  if (const auto samples = object.find("samples_us"); samples != object.end() && !samples->empty()) {
    line.p20_us = quantile(samples->get<std::vector<double>>(), 0.2);
    line.p80_us = quantile(samples->get<std::vector<double>>(), 0.8);
  }
  line.bytes = number(object, "bytes");
  line.flops = number(object, "flops");
  if (!line.peer.empty()) line.peer_median_us = number(object, "peer_median_us");
  return line;
}

[[noreturn]] void refuse(const std::string& path) {
  throw std::invalid_argument(fmt::format("--from: \"{}\": expected JSON lines", path));
}

}  // namespace

std::string ResultGroup::name() const {
  std::string out = source.ends_with(fmt::format("/{}", op)) ? source : fmt::format("{}-{}", source, op);
  for (char& c : out) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') c = '-';
  }
  return out;
}

void ResultLines::add(const std::string& source, const Json& object) {
  const bool timing = object.is_object() && !text(object, "op").empty() && number(object, "median_us") > 0;
  if (!timing) {
    ++skipped;
    return;
  }
  const std::string op = text(object, "op");
  auto group = std::find_if(groups.begin(), groups.end(),
                            [&](const ResultGroup& g) { return g.source == source && g.op == op; });
  if (group == groups.end()) group = groups.insert(groups.end(), {source, op, {}});
  group->lines.push_back(line_of(object));
}

void ResultLines::add_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream whole;
  whole << file.rdbuf();
  if (!file) throw std::invalid_argument(fmt::format("--from: cannot read \"{}\"", path));
  const std::filesystem::path where(path);
  const std::string folder = where.parent_path().filename().string();
  const std::string stem = where.stem().string();
  const std::string source = folder.empty() ? stem : fmt::format("{}/{}", folder, stem);
  const Json report = Json::parse(whole.str(), nullptr, false);
  if (report.is_object() && report.contains("schema")) {
    const auto timings = report.find("timings");
    if (timings == report.end() || !timings->is_object()) return;
    const auto kernels = timings->find("kernels");
    if (kernels == timings->end() || !kernels->is_array()) refuse(path);
    for (const Json& line : *kernels) add(source, line);
    return;
  }
  for (std::string line; std::getline(whole, line);) {
    if (line.empty()) continue;
    const Json object = Json::parse(line, nullptr, false);
    if (!object.is_object()) refuse(path);
    add(source, object);
  }
}

}  // namespace isobit::cli
