// How an operator is checked from the command line. A new operator is one function and one line in check.cpp's table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/report.h"
#include "kernels.h"
#include "shape.h"

namespace isobit::cli {

struct CheckOptions {
  std::vector<Kernel> kernels;      // rows to check, all usable here, at least one
  ShapeLists shape;                 // --shape; letters that are missing take the check's own sizes
  std::vector<std::string> dtypes;  // --dtype; empty: every dtype of the operator
  uint64_t seed = 1;
  bool invariance = false;   // bytes against bytes over every schedule that the contract leaves free, instead of values
                             // against an oracle
  bool quick = false;        // a sample that takes seconds
  bool plant_fault = false;  // spoil one result on purpose: the check must then fail
};

// Runs the operator's cases and adds one result per named group. Throws std::invalid_argument for a bad option.
using CheckFunction = void (*)(const CheckOptions& options, CheckReport& report);

void check_linear_logp(const CheckOptions& options, CheckReport& report);
void check_linear_logp_backward(const CheckOptions& options, CheckReport& report);
void check_geglu(const CheckOptions& options, CheckReport& report);
void check_nvfp4(const CheckOptions& options, CheckReport& report);  // of the operator that the kernels belong to

}  // namespace isobit::cli
