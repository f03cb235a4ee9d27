#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "arrays.h"
#include "check/linear_logp.h"
#include "check/linear_logp_case.h"
#include "ops/linear_logp/reference.h"
#include "ops/linear_logp/tolerance.h"

namespace isobit::cli {
namespace {

namespace op = isobit::linear_logp;

// Compares one row's values; errors are in units of their bounds, so the result's bound is 1.
class RowCheck {
 public:
  RowCheck(const op::ReferenceProblem& problem, int64_t row, CheckResult* result)
      : problem_(problem), row_(row), result_(*result), logits_(op::reference_logits(problem, row)) {}

  void run(const std::string& bytes) {
    const op::ReferenceRow expected = op::reference_from_logits(problem_, row_, logits_);
    const double z_error = logit_error();
    const int64_t v = problem_.vocab;
    const int64_t k_count = problem_.targets;
    for (int64_t k = 0; k < k_count; ++k) {
      const double logp = expected.logp[k];
      compare("logp", value(bytes, k), logp, 2 * z_error + op::logp_bound(logp, v));
      compare("target_logit", value(bytes, 2 * k_count + k), expected.target_logit[k], z_error);
    }
    compare("lse", value(bytes, 3 * k_count), expected.lse, z_error + op::lse_bound(expected.lse, v));
    const double weight = mean_weight(expected.lse);
    compare("entropy", value(bytes, 3 * k_count + 1), expected.entropy,
            2 * z_error * (weight + std::fabs(expected.lse) + 1) +
                op::entropy_bound(expected.lse, expected.entropy, weight, v));
  }

 private:
  static double value(const std::string& bytes, int64_t index) {
    float x = 0;
    std::memcpy(&x, &bytes[static_cast<size_t>(index) * 4], 4);
    return x;
  }

  void compare(const char* name, double got, double expected, double bound) {
    ++result_.compared;
    const double error = std::isnan(expected) && std::isnan(got) ? 0 : std::fabs(got - expected) / bound;
    result_.worst = std::max(result_.worst, error);
    if (error <= 1) return;
    if (result_.differing++ > 0) return;
    result_.first = std::string(name) + " of row " + std::to_string(row_) + ": expected " + std::to_string(expected) +
                    ", got " + std::to_string(got);
  }

  double logit_error() const {
    double worst = 0;
    for (int64_t v = 0; v < problem_.vocab; ++v) {
      double absolute = 0;
      for (int64_t i = 0; i < problem_.width; ++i) {
        absolute += std::fabs(problem_.hidden[static_cast<size_t>(row_ * problem_.width + i)] *
                              problem_.weight[static_cast<size_t>(v * problem_.width + i)]);
      }
      worst = std::max(worst, op::logit_bound(problem_.width, absolute, logits_[static_cast<size_t>(v)],
                                              problem_.temperature[static_cast<size_t>(row_)]));
    }
    return worst;
  }

  double mean_weight(double lse) const {
    double size = 0;
    double plain = 0;
    double relative = 0;
    const double largest = *std::max_element(logits_.begin(), logits_.end());
    for (const double z : logits_) {
      const double p = std::exp(z - lse);
      size = std::max(size, std::fabs(z));
      plain += p * std::fabs(z);
      relative += p * (largest - z);
    }
    return size <= 60 ? plain : 120 + 2 * relative;
  }

  const op::ReferenceProblem& problem_;
  int64_t row_;
  CheckResult& result_;
  std::vector<double> logits_;
};

void check_case(const CheckOptions& options, const Kernel& kernel, const LogpShape& shape, const LogpOptions& logp,
                const std::string& name, CheckReport& report) {
  CheckResult result;
  result.op = "linear_logp";
  result.kernel = kernel.name;
  result.name = "N=" + std::to_string(shape.n) + " H=" + std::to_string(shape.h) + " V=" + std::to_string(shape.v) +
                " " + dtype_text(logp.dtype) + ", " + name + ", error in units of its bound";
  result.worst = 0;
  result.bound = 1;
  report.progress(result.name, 0, 1);
  const LogpCase logp_case(kernel, {kernel.place(), 0}, shape, logp, options.seed);
  const op::ReferenceProblem problem = reference_of(logp_case);
  RowBytes rows = logp_case.whole({.rows = shape.n, .threads = 0});
  if (options.plant_fault) rows[0][3] = static_cast<char>(rows[0][3] ^ 1);  // an exponent bit of the first row's logp
  for (int64_t n = 0; n < shape.n; ++n) RowCheck(problem, n, &result).run(rows[static_cast<size_t>(n)]);
  report.add(result);
}

}  // namespace

void check_linear_logp_values(const CheckOptions& options, const Kernel& kernel, CheckReport& report) {
  const Shape defaults = {{"N", 5}, {"H", 64}, {"V", 1025}};
  ShapeLists lists = options.shape;
  if (!options.quick && lists.count("H") == 0) lists["H"] = {1, 64, 640};
  if (!options.quick && lists.count("V") == 0) lists["V"] = {1, 63, 129, 1025, 8193};
  const std::vector<std::string> dtypes =
      options.dtypes.empty() ? std::vector<std::string>{"bfloat16", "float16"} : options.dtypes;
  for (const std::string& dtype : dtypes) {
    const isobit_dtype type = parse_dtype(dtype);
    for (const Shape& s : combine(lists, {"N", "H", "V"}, defaults)) {
      const LogpShape shape = {s.at("N"), s.at("H"), s.at("V"), 2, 0};
      check_case(options, kernel, shape, {.dtype = type}, "no options", report);
      check_case(options, kernel, shape,
                 {.dtype = type, .bias = true, .row_temperature = true, .softcap = 30.0f, .ignored_rows = true},
                 "bias, softcap, row temperatures, ignored rows", report);
    }
  }
}

}  // namespace isobit::cli
