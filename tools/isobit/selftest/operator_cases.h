// The calls whose bytes a self-test compares: small ones that touch every operator, dtype and option.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device.h"
#include "kernels.h"

namespace isobit::cli {

// Bytes of an output, row by row. An empty row was not computed.
using OutputRows = std::vector<std::string>;

// A call's outputs as one call gives them, and from calls over some of its rows with other strides, workspaces and
// threads: the same bytes, as far as they were computed.
class OperatorCalls {
 public:
  virtual ~OperatorCalls() = default;
  // Throws std::runtime_error with the library's message if the call is refused or fails.
  virtual OutputRows whole() const = 0;
  virtual OutputRows apart() const = 0;
};

struct OperatorCase {
  const char* op;
  const char* name;
  // Every sum is exact in fp32 in any order, or there is none: all kernels give the CPU's bytes, whatever their rule.
  bool exact;
  uint64_t golden;  // FNV-1a over the bytes that the CPU gives
  std::unique_ptr<OperatorCalls> (*make)(const Kernel& kernel, Place place);
  bool large = false;
};

std::span<const OperatorCase> operator_cases();

uint64_t hash_of(const OutputRows& rows);

}  // namespace isobit::cli
