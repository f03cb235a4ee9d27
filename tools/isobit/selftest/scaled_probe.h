// What the block-scaled instruction of SM100, SM103 and SM110 (tcgen05 kind mxf4nvf4) computes. It is reached through
// nvfp4_linear's row for it, with fp32 outputs and a global scale that is a power of two: an output is the bare sum.
#pragma once

#include <nlohmann/json.hpp>

#include "device.h"

namespace isobit::cli {

// The section "block_scaled" of a report: operands, outputs, and the rules that fit best.
nlohmann::ordered_json probe_block_scaled(Place place);

}  // namespace isobit::cli
