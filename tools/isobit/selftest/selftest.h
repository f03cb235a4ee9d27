// The whole self-test of one device, or of the CPU backend alone: what it found, as data.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "selftest/chain_probe.h"
#include "selftest/operator_bits.h"
#include "selftest/timings.h"

namespace isobit::cli {

// The name of the report's format; docs/selftest.md describes it.
inline constexpr const char* kSelftestSchema = "isobit-selftest/1";

struct SelftestOptions {
  std::optional<int32_t> device = std::nullopt;  // none: the CPU backend alone
  bool quick = false;
  bool timings = true;
  bool plant_fault = false;
};

struct SelftestResult {
  SelftestOptions options;
  nlohmann::ordered_json machine;
  std::vector<BitsResult> bits;
  std::vector<ChainProbe> chains;
  nlohmann::ordered_json block_scaled;
  std::optional<Timings> timings;
  bool complete = false;  // every section is there

  // With a device: one of its kernels at least did not refuse. Without one: true.
  bool device_ran() const;
  // Something was tested, on the device if there is one, and nothing that a contract promises was found broken.
  bool ok() const;
};

// `progress` is called with the section, what it is at, and what is there so far; after the last section too.
using SelftestProgress = std::function<void(const std::string& section, const std::string& at, const SelftestResult&)>;
SelftestResult run_selftest(const SelftestOptions& options, const SelftestProgress& progress);

nlohmann::ordered_json describe_selftest(const SelftestResult& result);

}  // namespace isobit::cli
