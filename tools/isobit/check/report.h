// Results of a check: one line per group on stdout, or one JSON object per line.
#pragma once

#include <cstdint>
#include <string>

#include "terminal.h"

namespace isobit::cli {

// What one group of comparisons found. It passes if something was compared, nothing differs, and the worst error (if
// there is a bound) is within it.
struct CheckResult {
  std::string op;
  std::string kernel;
  std::string name;       // "rows alone and in a batch", "against the fp64 oracle, bfloat16"
  int64_t compared = 0;   // values, or bytes
  int64_t differing = 0;  // of those, the wrong ones
  double worst = -1;      // largest error seen; below 0: not measured
  double bound = -1;      // what it may be
  std::string first;      // first wrong value: coordinate, expected, got, both in bits
  bool passed() const { return compared > 0 && differing == 0 && (worst < 0 || worst <= bound); }
};

class CheckReport {
 public:
  CheckReport(bool json, bool quiet) : json_(json), progress_(quiet) {}
  // A progress line on stderr while a long group runs.
  void progress(const std::string& what, long done, long total) { progress_.show(what, done, total); }
  void add(const CheckResult& result);
  void finish();  // the closing line
  int passed() const { return passed_; }
  int failed() const { return failed_; }

 private:
  bool json_;
  Progress progress_;
  int passed_ = 0;
  int failed_ = 0;
};

}  // namespace isobit::cli
