// Two files of log-probabilities: largest difference, k3 estimate of the KL divergence, first row that differs.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "command.h"
#include "compare/compare.h"
#include "terminal.h"

namespace isobit::cli {
namespace {

struct Difference {
  size_t differing = 0;     // values whose bits differ
  size_t incomparable = 0;  // of those, a NaN or an infinity on one side
  size_t first = 0;         // index of the first of them
  double largest = 0;       // |difference| of the finite ones
  double k3 = 0;            // mean of exp(d) - 1 - d, d = second - first
};

Difference differences(const std::vector<float>& a, const std::vector<float>& b) {
  Difference result;
  size_t counted = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(b[i]) - static_cast<double>(a[i]);
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      if (result.differing == 0) result.first = i;
      ++result.differing;
      if (!std::isfinite(d)) ++result.incomparable;
    }
    if (!std::isfinite(d)) continue;
    result.largest = std::fmax(result.largest, std::fabs(d));
    result.k3 += std::expm1(d) - d;
    ++counted;
  }
  if (counted > 0) result.k3 /= static_cast<double>(counted);
  return result;
}

}  // namespace

int compare_logp(const CompareOptions& options) {
  const LogpFile a = read_logp(options.first);
  const LogpFile b = read_logp(options.second);
  if (a.values.size() != b.values.size() || a.columns != b.columns) {
    throw std::runtime_error(fmt::format("compare: expected equal shapes, got {} x {} and {} x {}",
                                         a.values.size() / a.columns, a.columns, b.values.size() / b.columns,
                                         b.columns));
  }
  const Difference d = differences(a.values, b.values);
  const bool passed = options.tolerance > 0 ? d.largest <= options.tolerance && d.incomparable == 0 : d.differing == 0;
  if (options.json) {
    nlohmann::ordered_json object = {
        {"values", a.values.size()}, {"differing", d.differing},       {"max_abs", d.largest}, {"k3", d.k3},
        {"first_row", nullptr},      {"equal_bits", d.differing == 0}, {"passed", passed}};
    if (d.differing > 0) object["first_row"] = d.first / a.columns;
    fmt::print("{}\n", object.dump());
  } else {
    fmt::print("values             {}\ndiffering bits     {}\n", a.values.size(), d.differing);
    fmt::print("max |difference|   {:.9g}\nk3 KL estimate     {:.9g}\n", d.largest, d.k3);
    if (d.differing > 0) {
      fmt::print("first differing    row {}, column {}: {:.9g} ({:08X}) and {:.9g} ({:08X})\n", d.first / a.columns,
                 d.first % a.columns, a.values[d.first], std::bit_cast<uint32_t>(a.values[d.first]), b.values[d.first],
                 std::bit_cast<uint32_t>(b.values[d.first]));
    }
    fmt::print("{}\n", paint(passed ? Colour::kGreen : Colour::kRed, passed ? "pass" : "FAIL"));
  }
  return passed ? kOk : kFailed;
}

}  // namespace isobit::cli
