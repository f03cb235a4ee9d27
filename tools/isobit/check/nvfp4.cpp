// nvfp4_quantize, nvfp4_linear and nvfp4_geglu: values against fp64, and bytes against bytes over every freedom.
#include <algorithm>
#include <stdexcept>

#include "arrays.h"
#include "check/check.h"
#include "check/nvfp4_case.h"

namespace isobit::cli {
namespace {

std::string text_of(const Nvfp4Case& c, isobit_dtype dtype) {
  const Nvfp4CaseShape& s = c.shape();
  const std::string n = c.kernel().op == "nvfp4_quantize" ? "" : " N=" + std::to_string(s.n);
  return "M=" + std::to_string(s.m) + n + " K=" + std::to_string(s.k) + " " + dtype_text(dtype);
}

void check_values(const CheckOptions& options, const Nvfp4Case& c, isobit_dtype dtype, CheckReport& report) {
  CheckResult result;
  result.op = c.kernel().op;
  result.kernel = c.kernel().name;
  result.name = text_of(c, dtype) + " against fp64, error in units of its bound";
  result.worst = 0;
  result.bound = 1;
  report.progress(result.name, 0, 1);
  std::vector<std::string> rows = c.run({.rows = c.shape().m, .threads = 0});
  if (rows.empty()) throw std::runtime_error(isobit_last_error());
  if (options.plant_fault) rows[0][1] = static_cast<char>(rows[0][1] ^ 0x77);
  for (int64_t row = 0; row < c.shape().m; ++row) {
    const double error = c.worst_error(row, rows[static_cast<size_t>(row)]);
    ++result.compared;
    result.worst = std::max(result.worst, error);
    if (error <= 1) continue;
    if (result.differing++ == 0) result.first = "row " + std::to_string(row) + ": " + std::to_string(error);
  }
  report.add(result);
}

class Invariance {
 public:
  Invariance(const CheckOptions& options, const Nvfp4Case& c, isobit_dtype dtype, CheckReport& report)
      : options_(options),
        case_(c),
        where_(text_of(c, dtype)),
        report_(report),
        base_(c.run({.rows = c.shape().m, .threads = 0})) {}

  void run() {
    if (base_.empty()) throw std::runtime_error(isobit_last_error());
    const int64_t m = case_.shape().m;
    group("rows alone and in chunks", [&] {
      for (const int64_t size : {int64_t{1}, int64_t{3}, int64_t{33}, int64_t{128}, int64_t{200}}) {
        if (size >= m) continue;
        for (int64_t first = 0; first < m; first += std::max(size, m / 4)) {
          compare({.first_row = first, .rows = std::min(size, m - first)});
        }
      }
    });
    group("layouts and strides", [&] {
      for (const isobit_nvfp4_layout layout : {ISOBIT_NVFP4_LINEAR, ISOBIT_NVFP4_128X4, ISOBIT_NVFP4_8X4}) {
        for (const int64_t gap : {0, 1, 16}) compare({.rows = m, .layout = layout, .gap = gap});
      }
    });
    group("threads and workspace", [&] {
      for (const int32_t threads : {1, 2, 5}) {
        for (const bool minimum : {false, true}) {
          compare({.rows = m, .minimum_workspace = minimum, .threads = threads});
        }
      }
    });
    if (case_.kernel().place() == ISOBIT_CPU) return;
    group("against the CPU", [&] { compare_with(cpu_rows(), 0); });
  }
  void use_cpu(const Nvfp4Case* cpu) { cpu_ = cpu; }

 private:
  std::vector<std::string> cpu_rows() const {
    return cpu_ == nullptr ? std::vector<std::string>() : cpu_->run({.rows = case_.shape().m, .threads = 0});
  }

  template <class Body>
  void group(const char* name, const Body& body) {
    result_ = CheckResult();
    result_.op = case_.kernel().op;
    result_.kernel = case_.kernel().name;
    result_.name = where_ + ", " + name;
    report_.progress(result_.name, 0, 1);
    not_taken_ = 0;
    body();
    if (not_taken_ > 0) result_.name += ", without " + std::to_string(not_taken_) + " calls that the kernel refuses";
    if (result_.compared > 0) report_.add(result_);
  }
  void compare(const Nvfp4Call& call) {
    const std::vector<std::string> rows = case_.run(call);
    if (rows.empty()) ++not_taken_;
    compare_with(rows, call.first_row);
  }
  void compare_with(std::vector<std::string> rows, int64_t first) {
    if (options_.plant_fault && !rows.empty()) rows[0][0] = static_cast<char>(rows[0][0] ^ 1);
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string& expected = base_[static_cast<size_t>(first) + i];
      for (size_t b = 0; b < expected.size(); ++b) {
        ++result_.compared;
        if (rows[i][b] == expected[b]) continue;
        if (result_.differing++ == 0) {
          result_.first = "row " + std::to_string(first + static_cast<int64_t>(i)) + ", byte " + std::to_string(b);
        }
      }
    }
  }

  const CheckOptions& options_;
  const Nvfp4Case& case_;
  const Nvfp4Case* cpu_ = nullptr;
  std::string where_;
  CheckReport& report_;
  std::vector<std::string> base_;
  CheckResult result_;
  int64_t not_taken_ = 0;
};

// The CPU's row of the operator if it has the kernel's contract, so the same bytes.
std::vector<Kernel> cpu_twin(const Kernel& kernel) {
  std::vector<Kernel> rows = select_kernels(kernel.op, "cpu");
  if (rows.empty() || rows[0].contract != kernel.contract) rows.clear();
  return rows;
}

std::vector<isobit_dtype> dtypes_of(const CheckOptions& options, const std::string& op) {
  if (op == "nvfp4_geglu") return {ISOBIT_BF16};  // packed in, packed out
  std::vector<isobit_dtype> dtypes;
  for (const std::string& name : options.dtypes) dtypes.push_back(parse_dtype(name));
  if (!dtypes.empty()) return dtypes;
  if (op == "nvfp4_linear") return {ISOBIT_BF16, ISOBIT_FP32};
  return {ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32};
}

void check_shape(const CheckOptions& options, const Kernel& kernel, const Nvfp4CaseShape& shape, isobit_dtype dtype,
                 CheckReport& report) {
  const Nvfp4Case c(kernel, shape, dtype, options.seed);
  if (!options.invariance) return check_values(options, c, dtype, report);
  Invariance invariance(options, c, dtype, report);
  const std::vector<Kernel> twin = cpu_twin(kernel);
  std::unique_ptr<Nvfp4Case> cpu;
  if (!twin.empty()) cpu = std::make_unique<Nvfp4Case>(twin[0], shape, dtype, options.seed);
  invariance.use_cpu(cpu.get());
  invariance.run();
}

}  // namespace

void check_nvfp4(const CheckOptions& options, CheckReport& report) {
  for (const Kernel& kernel : options.kernels) {
    const bool quantize = kernel.op == "nvfp4_quantize";
    const std::vector<std::string> letters =
        quantize ? std::vector<std::string>{"M", "K"} : std::vector<std::string>{"M", "N", "K"};
    ShapeLists lists = options.shape;
    if (lists.count("M") == 0) lists["M"] = options.quick ? std::vector<int64_t>{9} : std::vector<int64_t>{1, 9, 130};
    if (lists.count("K") == 0)
      lists["K"] = options.quick ? std::vector<int64_t>{192} : std::vector<int64_t>{64, 192, 1024};
    const Shape defaults = {{"M", 9}, {"N", 144}, {"K", 192}};
    for (const Shape& s : combine(lists, letters, defaults)) {
      const Nvfp4CaseShape shape = {s.at("M"), quantize ? 0 : s.at("N"), s.at("K")};
      for (const isobit_dtype dtype : dtypes_of(options, kernel.op)) check_shape(options, kernel, shape, dtype, report);
    }
  }
}

}  // namespace isobit::cli
