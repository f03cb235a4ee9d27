// geglu: values against fp64, and bytes against bytes over every freedom, forward and backward.
#include <algorithm>
#include <functional>

#include "arrays.h"
#include "check/check.h"
#include "check/geglu_case.h"

namespace isobit::cli {
namespace {

struct Form {
  isobit_gelu gelu;
  const char* name;
};
constexpr Form kForms[] = {{ISOBIT_GELU_TANH, "tanh"}, {ISOBIT_GELU_ERF, "erf"}};

// One case of one kernel, and the words that name its groups.
struct Subject {
  const CheckOptions& options;
  const Kernel& kernel;
  const GegluCase& c;
  std::string where;

  CheckResult result(const std::string& name) const {
    CheckResult out;
    out.op = kernel.op;
    out.kernel = kernel.name;
    out.name = where + name;
    return out;
  }
};

void check_values(const Subject& s, CheckReport& report) {
  CheckResult result = s.result(" against fp64, error in units of its bound");
  result.worst = 0;
  result.bound = 1;
  std::vector<std::string> rows = s.c.run({.rows = s.c.rows(), .threads = 0});
  if (s.options.plant_fault) rows[0][1] = static_cast<char>(rows[0][1] ^ 0x55);
  for (int64_t row = 0; row < s.c.rows(); ++row) {
    const double error = s.c.worst_error(row, rows[static_cast<size_t>(row)]);
    ++result.compared;
    result.worst = std::max(result.worst, error);
    if (error <= 1) continue;
    if (result.differing++ == 0) result.first = "row " + std::to_string(row) + ": " + std::to_string(error);
  }
  report.add(result);
}

void compare(const Subject& s, const std::vector<std::string>& base, std::vector<std::string> rows, int64_t first,
             CheckResult* result) {
  if (s.options.plant_fault) rows[0][0] = static_cast<char>(rows[0][0] ^ 1);
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string& expected = base[static_cast<size_t>(first) + i];
    for (size_t b = 0; b < expected.size(); ++b) {
      ++result->compared;
      if (rows[i][b] == expected[b]) continue;
      if (result->differing++ == 0) {
        result->first = "row " + std::to_string(first + static_cast<int64_t>(i)) + ", byte " + std::to_string(b);
      }
    }
  }
}

std::vector<GegluCall> calls_of_parts(int64_t rows) {
  std::vector<GegluCall> calls;
  for (const int64_t size : {int64_t{1}, int64_t{3}, int64_t{32}}) {
    for (int64_t first = 0; size < rows && first < rows; first += std::max(size, rows / 3)) {
      calls.push_back({.first_row = first, .rows = std::min(size, rows - first)});
    }
  }
  return calls;
}

std::vector<GegluCall> calls_of_layouts(int64_t rows) {
  constexpr GegluArrangement kAll[] = {GegluArrangement::kSeparate, GegluArrangement::kStacked,
                                       GegluArrangement::kInterleaved};
  std::vector<GegluCall> calls;
  for (const GegluArrangement inputs : kAll) {
    for (const GegluArrangement gradients : kAll) {
      for (const int64_t gap : {0, 1, 8}) {
        for (const int64_t offset : {0, 1, 8}) {
          calls.push_back({.rows = rows, .inputs = inputs, .gradients = gradients, .gap = gap, .offset = offset});
          calls.push_back(calls.back());
          calls.back().swapped = true;
        }
      }
    }
    calls.push_back({.rows = rows, .inputs = inputs, .in_place = true});
  }
  return calls;
}

void check_invariance(const Subject& s, const GegluCase* cpu, CheckReport& report) {
  const int64_t m = s.c.rows();
  const std::vector<std::string> base = s.c.run({.rows = m, .threads = 0});
  const auto group = [&](const char* name, const std::vector<GegluCall>& calls) {
    CheckResult result = s.result(name);
    for (size_t i = 0; i < calls.size(); ++i) {
      report.progress(result.name, static_cast<long>(i), static_cast<long>(calls.size()));
      compare(s, base, s.c.run(calls[i]), calls[i].first_row, &result);
    }
    if (!calls.empty()) report.add(result);
  };
  group(", rows alone and in chunks", calls_of_parts(m));
  group(", layouts, gaps, alignment, in place", calls_of_layouts(m));
  if (cpu == nullptr) {
    group(", threads", {{.rows = m, .threads = 1}, {.rows = m, .threads = 2}, {.rows = m, .threads = 5}});
    return;
  }
  CheckResult result = s.result(", against the CPU");
  compare(s, base, cpu->run({.rows = m, .threads = 0}), 0, &result);
  report.add(result);
}

std::vector<isobit_dtype> dtypes_of(const CheckOptions& options) {
  std::vector<isobit_dtype> dtypes;
  for (const std::string& name : options.dtypes) dtypes.push_back(parse_dtype(name));
  return dtypes.empty() ? std::vector<isobit_dtype>{ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32} : dtypes;
}

}  // namespace

void check_geglu(const CheckOptions& options, CheckReport& report) {
  ShapeLists lists = options.shape;
  if (lists.count("rows") == 0)
    lists["rows"] = options.quick ? std::vector<int64_t>{5} : std::vector<int64_t>{1, 5, 70};
  if (lists.count("cols") == 0) {
    lists["cols"] = options.quick ? std::vector<int64_t>{67} : std::vector<int64_t>{1, 7, 67, 521};
    if (!options.quick && !options.invariance) lists["cols"].push_back(4096);
  }
  for (const Kernel& kernel : options.kernels) {
    const Place place = {kernel.place(), 0};
    for (const Shape& shape : combine(lists, {"rows", "cols"}, {{"rows", 5}, {"cols", 67}})) {
      for (const isobit_dtype dtype : dtypes_of(options)) {
        for (const Form& form : kForms) {
          const auto make = [&](const Kernel& row, Place where) {
            return GegluCase(row, where, shape.at("rows"), shape.at("cols"), dtype, form.gelu, options.seed);
          };
          const GegluCase c = make(kernel, place);
          const Subject subject = {options, kernel, c,
                                   shape_text(shape, {"rows", "cols"}) + " " + dtype_text(dtype) + " " + form.name};
          if (!options.invariance) {
            check_values(subject, report);
            continue;
          }
          Kernel twin = kernel;
          twin.name = "cpu";
          const GegluCase cpu = make(twin, {ISOBIT_CPU, 0});
          check_invariance(subject, place.type == ISOBIT_CPU ? nullptr : &cpu, report);
        }
      }
    }
  }
}

}  // namespace isobit::cli
