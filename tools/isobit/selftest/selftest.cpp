#include "selftest/selftest.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "selftest/machine.h"
#include "selftest/scaled_probe.h"

namespace isobit::cli {
namespace {

constexpr int32_t kMeasuredCapability = 90;  // whose tensor cores sm90-k16-f25 describes

int32_t capability_of(const SelftestOptions& options) {
  int32_t capability = 0;
  if (options.device) isobit_device_info(*options.device, nullptr, 0, &capability);
  return capability;
}

// On SM90 the rule is part of the contract; elsewhere the probe only tells.
bool breaks_rule(const SelftestResult& result) {
  if (capability_of(result.options) != kMeasuredCapability) return false;
  return std::any_of(result.chains.begin(), result.chains.end(), [](const ChainProbe& p) { return p.differing > 0; });
}

}  // namespace

bool SelftestResult::device_ran() const {
  return !options.device || std::any_of(bits.begin(), bits.end(), [](const BitsResult& r) {
    return r.kernel.place() == ISOBIT_CUDA && r.state != BitsState::kUnsupported;
  });
}

bool SelftestResult::ok() const {
  const bool failed =
      std::any_of(bits.begin(), bits.end(), [](const BitsResult& r) { return r.state == BitsState::kFailed; });
  const bool any =
      std::any_of(bits.begin(), bits.end(), [](const BitsResult& r) { return r.state == BitsState::kEqual; });
  return any && device_ran() && !failed && !breaks_rule(*this);
}

SelftestResult run_selftest(const SelftestOptions& options, const SelftestProgress& progress) {
  SelftestResult result;
  result.options = options;
  const Place place = options.device ? Place{ISOBIT_CUDA, *options.device} : Place{};
  result.machine = describe_machine(place);
  progress("bits", "", result);
  result.bits = operator_bits(
      {options.device.value_or(0), options.quick, options.plant_fault},
      [&](const BitsResult& r) { progress("bits", fmt::format("{} {}", r.kernel.op, r.kernel.name), result); });
  progress("tensor core", "", result);
  result.chains = probe_chains(place);
  result.block_scaled = probe_block_scaled(place);
  progress("timings", "", result);
  if (options.timings) {
    result.timings = time_kernels({place, options.quick}, [&](const Timing& t) {
      progress("timings", fmt::format("{} {}", t.record.op, t.record.bench_case.kernel.name), result);
    });
  }
  result.complete = true;
  progress("done", "", result);
  return result;
}

nlohmann::ordered_json describe_selftest(const SelftestResult& result) {
  nlohmann::ordered_json out = {{"schema", kSelftestSchema},
                                {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                                {"complete", result.complete},
                                {"ok", result.ok()},
                                {"options",
                                 {{"quick", result.options.quick},
                                  {"timings", result.options.timings},
                                  {"plant_fault", result.options.plant_fault}}},
                                {"machine", result.machine},
                                {"bits", describe_bits(result.bits)},
                                {"tensor_core", describe_chains(result.chains)},
                                {"block_scaled", result.block_scaled}};
  out["timings"] = result.timings ? describe_timings(*result.timings) : nlohmann::ordered_json(nullptr);
  return out;
}

}  // namespace isobit::cli
