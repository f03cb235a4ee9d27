// Runs a conformance case in the interpreter.
#pragma once
#include "ptx/runtime/emulation.h"
#include "ptx/test/conformance/cases.h"

namespace isobit::ptx::conformance {

struct Result {
  std::vector<uint32_t> out;
  Report report;
};

std::string source_folder();  // of the PTX texts, with a slash at its end
Result run_case(const Case& c, Module& module, const ScheduleCase& schedule);

}  // namespace isobit::ptx::conformance
