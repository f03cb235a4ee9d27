// Bytes of every kernel of a place against the CPU backend's and against the hashes that this version was built with.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device.h"
#include "kernels.h"
#include "selftest/operator_cases.h"

namespace isobit::cli {

enum class BitsState {
  kEqual,       // as the contract says: the CPU's bytes and hash, the same in one call and in pieces
  kFailed,      // not so
  kNoPromise,   // the contract promises nothing across devices here: the difference is reported; pieces agree
  kUnsupported  // the kernel refuses the call, or cannot run here
};

struct BitsResult {
  const OperatorCase* test = nullptr;
  Kernel kernel;
  BitsState state = BitsState::kUnsupported;
  std::string reason;                // of kUnsupported, and of a call that failed
  uint64_t hash = 0;                 // of the outputs
  int64_t bytes = 0, differing = 0;  // against the CPU
  int64_t apart_bytes = 0, apart_differing = 0;
  std::string first;  // first byte that differs
};

struct Difference {
  int64_t bytes = 0, differing = 0;
  std::string first;  // "" if none differs
};

// Rows that one side left out (empty ones) are not compared. Of a row that both have, and of rows beyond the end of the
// other list, bytes that one side lacks differ.
Difference compare_rows(const OutputRows& expected, const OutputRows& got);

struct BitsOptions {
  int32_t device = 0;
  bool quick = false;        // without the large cases
  bool plant_fault = false;  // one bit of every expected hash is wrong: all that are promised must then fail
};

// All rows of the table of kernels, best first; those that cannot run here too. `done` gets every result as it comes.
std::vector<BitsResult> operator_bits(const BitsOptions& options, const std::function<void(const BitsResult&)>& done);

const char* state_text(BitsState state);
nlohmann::ordered_json describe_bits(const std::vector<BitsResult>& results);

}  // namespace isobit::cli
