// What a device's matrix instructions compute on the fixed dot products, and which rule that is.
#pragma once

#include <isobit/isobit.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device.h"

namespace isobit::cli {

// One form of the instruction with one element type.
struct ChainProbe {
  std::string form;
  isobit_dtype dtype = ISOBIT_BF16;
  std::string reason;            // why it did not run, "" if it did
  std::vector<uint32_t> random;  // outputs [kRows][kColumns] of both sets
  std::vector<uint32_t> bits;
  int64_t outputs = 0;
  int64_t differing = 0;  // from sm90-k16-f25
  bool ran() const { return reason.empty(); }
};

// Every form with both element types. A place without CUDA gives reasons only.
std::vector<ChainProbe> probe_chains(Place place);

// The section "tensor_core" of a report: inputs, outputs, and the rules that fit best.
nlohmann::ordered_json describe_chains(const std::vector<ChainProbe>& probes);

}  // namespace isobit::cli
