// Gradients of linear_logp against the fp64 oracle, or against themselves byte by byte.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "arrays.h"
#include "check/check.h"
#include "check/linear_logp_backward_case.h"
#include "ops/linear_logp/backward_bounds.h"

namespace isobit::cli {
namespace {

namespace op = isobit::linear_logp;

CheckResult result_of(const Kernel& kernel, const LogpShape& shape, const std::string& what) {
  CheckResult result;
  result.op = "linear_logp_backward";
  result.kernel = kernel.name;
  result.name =
      "N=" + std::to_string(shape.n) + " H=" + std::to_string(shape.h) + " V=" + std::to_string(shape.v) + ", " + what;
  return result;
}

// Errors in units of their bounds.
void compare_values(const char* name, const std::string& bytes, const std::vector<double>& expected,
                    const std::vector<double>& bounds, CheckResult* result) {
  for (size_t i = 0; i < expected.size(); ++i) {
    float got = 0;
    std::memcpy(&got, &bytes[i * 4], 4);
    ++result->compared;
    const double difference = std::fabs(got - expected[i]);
    const double error = difference == 0 ? 0 : difference / bounds[i];
    result->worst = std::max(result->worst, error);
    if (error <= 1 || result->differing++ > 0) continue;
    result->first = std::string(name) + "[" + std::to_string(i) + "]: expected " + std::to_string(expected[i]) +
                    ", got " + std::to_string(got);
  }
}

void check_values(const CheckOptions& options, const BackwardCase& c, CheckResult result, CheckReport& report) {
  result.worst = 0;
  result.bound = 1;
  report.progress(result.name, 0, 1);
  const op::ReferenceProblem problem = reference_of(c.forward());
  const op::ReferenceUpstream upstream = c.upstream();
  const op::ReferenceGradients expected = op::reference_gradients(problem, upstream);
  const op::GradientBounds bounds = op::gradient_bounds(problem, upstream, expected);
  GradientBytes got = c.whole({.rows = problem.rows, .threads = 0});
  if (options.plant_fault) got.hidden[3] = static_cast<char>(got.hidden[3] ^ 1);  // an exponent bit
  compare_values("d_hidden", got.hidden, expected.d_hidden, bounds.d_hidden, &result);
  compare_values("d_weight", got.weight, expected.d_weight, bounds.d_weight, &result);
  if (!got.bias.empty()) compare_values("d_bias", got.bias, expected.d_bias, bounds.d_bias, &result);
  report.add(result);
}

void compare_bytes(const std::string& where, const std::string& got, const std::string& expected, CheckResult* result) {
  for (size_t i = 0; i < expected.size(); ++i) {
    ++result->compared;
    if (got[i] == expected[i] || result->differing++ > 0) continue;
    result->first = where + ", byte " + std::to_string(i);
  }
}

void check_invariance(const CheckOptions& options, const BackwardCase& c, CheckResult result, CheckReport& report) {
  report.progress(result.name, 0, 1);
  const int64_t n = c.forward().shape().n;
  const int64_t v = c.forward().shape().v;
  const GradientBytes base = c.whole({.rows = n});
  const auto all = [&](const std::string& what, const GradientBytes& got) {
    compare_bytes("d_hidden, " + what, got.hidden, base.hidden, &result);
    compare_bytes("d_weight, " + what, got.weight, base.weight, &result);
    compare_bytes("d_bias, " + what, got.bias, base.bias, &result);
  };
  for (const int threads : {1, 3}) {
    for (const double share : {0.0, 0.3, 1.0}) {
      all("another workspace", c.whole({.rows = n, .workspace_share = share, .threads = threads}));
    }
  }
  all("saved before", c.whole({.rows = n, .saves = true}));
  const bool shards = v % 16 == 0 && c.takes_shards();
  for (const int64_t ranks : {1, 2, 4, 8, 16}) {
    if (shards) all(std::to_string(ranks) + " shards", c.sharded({.rows = n}, ranks));
  }
  result.name += shards ? ", 1 to 16 shards" : ", no shards";
  const size_t row_bytes = base.hidden.size() / static_cast<size_t>(n);
  for (const int64_t rows : {int64_t{1}, n / 2}) {
    for (const int64_t first : {int64_t{0}, n / 3, n - rows}) {
      if (rows == 0 || first + rows > n) continue;
      GradientBytes got = c.whole({.first_row = first, .rows = rows});
      if (options.plant_fault) got.hidden[0] = static_cast<char>(got.hidden[0] ^ 1);
      compare_bytes("d_hidden, " + std::to_string(rows) + " rows from " + std::to_string(first), got.hidden,
                    base.hidden.substr(static_cast<size_t>(first) * row_bytes, got.hidden.size()), &result);
    }
  }
  report.add(result);
}

}  // namespace

void check_linear_logp_backward(const CheckOptions& options, CheckReport& report) {
  const Shape defaults = {{"N", 9}, {"H", 48}, {"V", 400}};
  ShapeLists lists = options.shape;
  if (!options.quick && lists.count("V") == 0) lists["V"] = {1, 129, 400, 2064};
  if (!options.quick && lists.count("H") == 0) lists["H"] = {1, 48, 200};
  for (const Kernel& kernel : options.kernels) {
    for (const Shape& s : combine(lists, {"N", "H", "V"}, defaults)) {
      for (const bool every_option : {false, true}) {
        const LogpShape shape = {s.at("N"), s.at("H"), s.at("V"), every_option ? 2 : 1, 0};
        LogpOptions logp;
        if (every_option) logp = {.bias = true, .row_temperature = true, .softcap = 30.0f, .ignored_rows = true};
        const BackwardCase c(kernel, {kernel.place(), 0}, shape, logp, options.seed);
        std::string what = every_option ? "bias, softcap, row temperatures, ignored rows" : "no options";
        if (c.subtract_p()) what += ", 1 - p subtracted";
        if (options.invariance) {
          check_invariance(options, c, result_of(kernel, shape, what), report);
        } else {
          check_values(options, c, result_of(kernel, shape, what + ", error in units of its bound"), report);
        }
      }
    }
  }
}

}  // namespace isobit::cli
