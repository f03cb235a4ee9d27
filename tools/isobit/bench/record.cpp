#include "bench/record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "arrays.h"

namespace isobit::cli {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - std::floor(position)) * (values[above] - values[below]);
}

nlohmann::ordered_json to_json(const BenchRecord& record) {
  const BenchCase& c = record.bench_case;
  nlohmann::ordered_json shape;
  for (const std::string& letter : record.letters) shape[letter] = c.shape.at(letter);
  // Peers are measured by other programs, in alternation; a line of this one has none.
  return {{"op", record.op},
          {"kernel", c.kernel.name},
          {"contract", c.kernel.contract},
          {"shape", shape},
          {"dtype", dtype_text(c.dtype)},
          {"gpu", c.place.type == ISOBIT_CUDA ? nlohmann::ordered_json(device_name(c.place)) : nullptr},
          {"cpu", host_processor()},
          {"threads", c.threads},
          {"seed", c.seed},
          {"samples_us", record.samples_us},
          {"median_us", quantile(record.samples_us, 0.5)},
          {"p20_us", quantile(record.samples_us, 0.2)},
          {"p80_us", quantile(record.samples_us, 0.8)},
          {"bytes", record.bytes},
          {"flops", record.flops},
          {"peer", nullptr},
          {"peer_version", nullptr},
          {"peer_median_us", nullptr},
          {"ratio", nullptr},
          {"peak_bytes", record.peak_bytes},
          {"warm", record.warm},
          {"build", isobit_build_info()},
          {"command", record.command},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
}

std::vector<std::string> table_header() {
  return {"operator", "kernel", "shape", "dtype", "median us", "p20", "p80", "GB/s", "GFLOP/s"};
}

std::vector<std::string> table_row(const BenchRecord& record) {
  const BenchCase& c = record.bench_case;
  const double median = quantile(record.samples_us, 0.5);
  return {record.op,
          c.kernel.name,
          shape_text(c.shape, record.letters),
          dtype_text(c.dtype),
          fmt::format("{:.1f}", median),
          fmt::format("{:.1f}", quantile(record.samples_us, 0.2)),
          fmt::format("{:.1f}", quantile(record.samples_us, 0.8)),
          fmt::format("{:.1f}", record.bytes / median * 1e-3),
          fmt::format("{:.1f}", record.flops / median * 1e-3)};
}

}  // namespace isobit::cli
