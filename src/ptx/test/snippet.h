// Runs a few PTX instructions in one warp: %r1-%r4 come from the input, %r10-%r13 go to the output.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "ptx/engine/machine.h"

namespace isobit::ptx::test {

using Words = std::array<uint32_t, 4>;

// The text of a module with one kernel `k(in, out)` around `body`.
std::string snippet_text(const std::string& body);

struct SnippetResult {
  std::vector<Words> out;  // of each thread
  Report report;
  std::string error;  // of the parser
};

struct SnippetOptions {
  uint32_t threads = 32;
  uint32_t grid = 1;
  uint32_t cluster = 1;
  uint32_t dynamic_shared = 0;
  MachineOptions machine;
};

SnippetResult run_snippet(const std::string& body, std::vector<Words> in, const SnippetOptions& options = {});

// One thread's result for one input; the report must be clean.
Words evaluate(const std::string& body, Words in);

}  // namespace isobit::ptx::test
