// The self-test of a device, the PTX interpreter in its place: every kernel row and every form of the matrix
// instruction that a device of that capability takes.
#include <gtest/gtest.h>

#include <map>

#include "selftest/selftest.h"
#include "selftest/summary.h"
#include "selftest/test/device_emulated.h"

namespace isobit::cli {
namespace {

struct Expected {
  int capability;
  std::map<std::string, std::string> forms;  // state of each form
  bool block_scaled;
  std::vector<std::string> kernels;  // rows of nvfp4_linear that must have run
};

class SelftestEmulated : public testing::TestWithParam<Expected> {};

TEST_P(SelftestEmulated, RunsWhatTheDeviceTakes) {
  const Expected& expected = GetParam();
  const EmulatedDevice device(expected.capability);
  const SelftestResult result =
      run_selftest({.device = 0, .quick = true, .timings = false}, [](const auto&, const auto&, const auto&) {});
  const nlohmann::ordered_json report = describe_selftest(result);
  EXPECT_TRUE(result.ok()) << summary_of(result, report);
  EXPECT_TRUE(device.report().ok()) << device.report().text();
  for (const auto& form : report["tensor_core"]["forms"]) {
    const std::string name = form["form"];
    EXPECT_EQ(form["state"], expected.forms.at(name.substr(0, name.find('.')))) << name << form.dump();
    // Known before a launch.
    if (form["state"] == "unsupported") {
      EXPECT_NE(form["reason"].get<std::string>().find("the instruction is one of"), std::string::npos) << form.dump();
    }
  }
  EXPECT_EQ(report["block_scaled"]["state"] == "ran", expected.block_scaled) << report["block_scaled"].dump();
  std::map<std::string, int> ran;
  for (const BitsResult& r : result.bits) {
    EXPECT_NE(r.state, BitsState::kFailed) << r.kernel.op << " " << r.kernel.name << " " << r.test->name << r.reason;
    if (r.kernel.op == "nvfp4_linear" && r.state != BitsState::kUnsupported) ++ran[r.kernel.name];
  }
  for (const std::string& kernel : expected.kernels) EXPECT_EQ(ran[kernel], 2) << kernel;
}

std::vector<Expected> cases() {
  std::vector<Expected> out;
  const auto built = [](const char* name) {
    for (const Kernel& kernel : all_kernels()) {
      if (kernel.name == name && kernel.built) return true;
    }
    return false;
  };
  if (built("sm90")) {
    out.push_back(
        {90, {{"mma", "follows"}, {"wgmma", "follows"}, {"tcgen05", "unsupported"}}, false, {"sm90", "sm80"}});
  }
  if (built("sm100")) {
    // The interpreter takes the rule of SM90 for mma.sync and rounds a tcgen05 step's exact sum once; what silicon does
    // is not known.
    out.push_back({110,
                   {{"mma", "follows"}, {"wgmma", "unsupported"}, {"tcgen05", "differs"}},
                   true,
                   {"sm100", "sm100-pair", "sm80"}});
  }
  return out;
}

std::string name_of(const testing::TestParamInfo<Expected>& expected) {
  return "Capability" + std::to_string(expected.param.capability);
}

INSTANTIATE_TEST_SUITE_P(Devices, SelftestEmulated, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace isobit::cli
