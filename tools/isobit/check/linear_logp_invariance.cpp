#include <algorithm>
#include <stdexcept>

#include "arrays.h"
#include "check/linear_logp.h"
#include "check/linear_logp_case.h"

namespace isobit::cli {
namespace {

// Reference for every comparison: all rows in one call, one thread, all the workspace it likes.
class Group {
 public:
  Group(const LogpCase& logp_case, const RowBytes& base, const CheckOptions& options, CheckReport& report,
        const std::string& kernel, const std::string& where)
      : case_(logp_case), base_(base), options_(options), report_(report), kernel_(kernel), where_(where) {}

  void batches(const std::vector<int64_t>& sizes) {
    start("rows in batches of other sizes and at other places");
    for (const int64_t n : sizes) {
      if (n > case_.shape().n) continue;
      for (const int64_t first : {int64_t{0}, (case_.shape().n - n) / 2, case_.shape().n - n}) {
        compare_whole({.first_row = first, .rows = n});
      }
      compare_whole({.rows = n, .repeat_middle_row = true});
    }
    finish();
  }

  void neighbours() {
    start("a row beside rows of NaN");
    for (const int64_t n : {2, 17, 45, 129}) {
      if (n <= case_.shape().n) compare_whole({.rows = n, .nan_neighbours = true});
    }
    finish();
  }

  void layouts() {
    start("strides of hidden and weight");
    const int64_t n = std::min<int64_t>(case_.shape().n, 45);
    for (const int64_t gap : {1, 3, 8, 64}) {
      compare_whole({.rows = n, .hidden_gap = gap});
      compare_whole({.rows = n, .weight_gap = gap});
      compare_whole({.rows = n, .hidden_gap = gap, .weight_gap = gap});
    }
    finish();
  }

  void workspaces() {
    start("chunks of rows, threads, repeated calls");
    const int64_t n = std::min<int64_t>(case_.shape().n, 257);
    for (const int threads : {1, 2, 3}) {
      for (const double share : {0.0, 0.3, 1.0}) {
        compare_whole({.rows = n, .workspace_share = share, .threads = threads});
      }
    }
    finish();
  }

  void shards() {
    start("vocabulary shards with odd borders");
    const int64_t v = case_.shape().v;
    const int64_t n = std::min<int64_t>(case_.shape().n, 45);
    for (const int64_t count : {1, 2, 3, 8, 16}) {
      for (const int64_t shift : {0, 1, 37}) {
        std::vector<int64_t> cuts;
        for (int64_t i = 1; i < count; ++i) cuts.push_back(std::clamp<int64_t>(v * i / count + shift, 0, v));
        compare_sharded({.rows = n}, cuts);
      }
    }
    // Three ranks and an empty one in one leaf, and a rank that holds one id.
    compare_sharded({.rows = n}, {std::min<int64_t>(v, 130), std::min<int64_t>(v, 150), std::min<int64_t>(v, 150),
                                  std::min<int64_t>(v, 201), std::max<int64_t>(v - 1, std::min<int64_t>(v, 201))});
    finish();
  }

 private:
  void start(const std::string& name) {
    result_ = {};
    result_.op = "linear_logp";
    result_.kernel = kernel_;
    result_.name = where_ + ": " + name;
    report_.progress(result_.name, 0, 1);
  }
  void finish() { report_.add(result_); }

  void compare_whole(const LogpCall& call) { compare(call, case_.whole(call), base_[0].size()); }
  void compare_sharded(const LogpCall& call, const std::vector<int64_t>& cuts) {
    const bool swap = options_.plant_fault && cuts.size() == 15;
    compare(call, case_.sharded(call, cuts, swap), case_.merged_bytes());
  }

  void compare(const LogpCall& call, const RowBytes& rows, size_t bytes) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t middle = call.first_row + call.rows / 2;
      const int64_t row = call.repeat_middle_row ? middle : call.first_row + static_cast<int64_t>(i);
      if (call.nan_neighbours && row != middle) continue;
      const std::string& expected = base_[static_cast<size_t>(row)];
      for (size_t b = 0; b < bytes; ++b) {
        ++result_.compared;
        if (rows[i][b] == expected[b]) continue;
        if (result_.differing++ == 0) result_.first = describe(call, row, b, expected[b], rows[i][b]);
      }
    }
  }

  static std::string describe(const LogpCall& call, int64_t row, size_t byte, char expected, char got) {
    char text[128];
    std::snprintf(text, sizeof text, "row %lld of a call with %lld rows, byte %zu: expected %02X, got %02X",
                  static_cast<long long>(row), static_cast<long long>(call.rows), byte,
                  static_cast<unsigned>(static_cast<unsigned char>(expected)),
                  static_cast<unsigned>(static_cast<unsigned char>(got)));
    return text;
  }

  const LogpCase& case_;
  const RowBytes& base_;
  const CheckOptions& options_;
  CheckReport& report_;
  std::string kernel_;
  std::string where_;
  CheckResult result_;
};

struct Sizes {
  std::vector<int64_t> n, h, v;
};

Sizes sizes_of(const CheckOptions& options) {
  Sizes sizes;
  sizes.n = options.quick ? std::vector<int64_t>{1, 3, 45, 129}
                          : std::vector<int64_t>{1, 2, 3, 17, 33, 43, 44, 45, 46, 64, 128, 257, 1024};
  sizes.v = options.quick ? std::vector<int64_t>{1, 129, 8193}
                          : std::vector<int64_t>{1, 63, 127, 128, 129, 1023, 1025, 8191, 8193, 50257, 151936};
  for (const auto& [letter, values] : options.shape) {
    if (letter == "N") {
      sizes.n = values;
    } else if (letter == "H") {
      sizes.h = values;
    } else if (letter == "V") {
      sizes.v = values;
    } else {
      throw std::invalid_argument("--shape: expected N, H or V, got " + letter);
    }
  }
  return sizes;
}

LogpOptions every_option(isobit_dtype dtype) {
  return {.dtype = dtype, .bias = true, .row_temperature = true, .softcap = 30.0f, .ignored_rows = true};
}

}  // namespace

void check_linear_logp_invariance(const CheckOptions& options, const Kernel& kernel, CheckReport& report) {
  const Sizes sizes = sizes_of(options);
  std::vector<std::string> dtypes = options.dtypes;
  if (dtypes.empty())
    dtypes = options.quick ? std::vector<std::string>{"bfloat16"} : std::vector<std::string>{"bfloat16", "float16"};
  const int64_t largest_n = *std::max_element(sizes.n.begin(), sizes.n.end());
  for (const int64_t v : sizes.v) {
    // Wide vocabularies get narrow hidden states, so that the check takes minutes on two cores.
    const std::vector<int64_t> widths = !sizes.h.empty() ? sizes.h : std::vector<int64_t>{v > 10000 ? 16 : 72};
    for (const int64_t h : widths) {
      for (size_t d = 0; d < dtypes.size(); ++d) {
        if (d > 0 && v > 10000) continue;  // the second format differs in decoding only
        const isobit_dtype dtype = parse_dtype(dtypes[d]);
        const LogpShape shape = {largest_n, h, v, 2, std::min<int64_t>(v, 4)};
        const LogpCase logp_case(kernel, {kernel.place(), 0}, shape, every_option(dtype), options.seed);
        const std::string where =
            "V=" + std::to_string(v) + " H=" + std::to_string(h) + " " + std::string(dtype_text(dtype));
        report.progress(where, 0, 1);
        const RowBytes base = logp_case.whole({.rows = largest_n});
        Group group(logp_case, base, options, report, kernel.name, where);
        group.batches(sizes.n);
        group.neighbours();
        group.layouts();
        group.workspaces();
        group.shards();
      }
    }
  }
}

}  // namespace isobit::cli
