// The self-test of the CPU backend: its schema, what fails it, and what it says of kernels that are not here.
#include "selftest/selftest.h"

#include <gtest/gtest.h>

#include <set>

#include "selftest/machine.h"
#include "selftest/summary.h"

namespace isobit::cli {
namespace {

SelftestResult run(const SelftestOptions& options) {
  return run_selftest(options, [](const auto&, const auto&, const auto&) {});
}

TEST(Selftest, TheCpuBackendKeepsItsBytes) {
  const SelftestResult result = run({.quick = true, .timings = false});
  EXPECT_TRUE(result.complete);
  EXPECT_TRUE(result.ok()) << summary_of(result, describe_selftest(result));
  std::set<std::string> ops;
  for (const BitsResult& r : result.bits) {
    if (r.kernel.name != "cpu") continue;
    EXPECT_EQ(r.state, BitsState::kEqual) << r.test->op << " " << r.test->name << std::hex << " " << r.hash;
    EXPECT_GT(r.apart_bytes, 0);
    ops.insert(r.test->op);
  }
  for (const Kernel& kernel : all_kernels()) EXPECT_TRUE(ops.count(kernel.op)) << kernel.op << " has no case";
}

TEST(Selftest, AFlippedBitInTheExpectedHashesFailsEveryKernel) {
  const SelftestResult result = run({.timings = false, .plant_fault = true});
  EXPECT_FALSE(result.ok());
  for (const BitsResult& r : result.bits) {
    if (r.kernel.name != "cpu") continue;
    EXPECT_EQ(r.state, BitsState::kFailed) << r.test->op;
  }
  EXPECT_NE(summary_of(result, describe_selftest(result)).find("FAILED"), std::string::npos);
}

TEST(Selftest, TheReportHasItsSchema) {
  const nlohmann::ordered_json report = describe_selftest(run({.timings = false}));
  EXPECT_EQ(report["schema"], kSelftestSchema);
  EXPECT_TRUE(report["machine"]["device"].is_null());
  EXPECT_TRUE(report["timings"].is_null());
  ASSERT_EQ(report["tensor_core"]["forms"].size(), 6u);
  for (const auto& form : report["tensor_core"]["forms"]) {
    EXPECT_EQ(form["state"], "unsupported");
    EXPECT_EQ(form["reason"], "no CUDA device");
  }
  EXPECT_EQ(report["block_scaled"]["state"], "unsupported");
  EXPECT_NE(report["block_scaled"]["reason"], "");
  for (const auto& bits : report["bits"]) {
    EXPECT_EQ(bits.contains("hash"), bits["state"] != "unsupported");
    EXPECT_EQ(bits.contains("reason"), bits["state"] == "unsupported") << bits["op"];
  }
}

TEST(Selftest, NothingTestedIsNotOk) { EXPECT_FALSE(SelftestResult{}.ok()); }

TEST(Selftest, ADeviceThatRefusesEverythingIsNotOk) {
  SelftestResult result;
  result.machine = describe_machine({});
  result.bits.resize(2);
  for (BitsResult& r : result.bits) r.test = operator_cases().data();
  result.bits[0].kernel.name = "cpu";
  result.bits[0].state = BitsState::kEqual;
  result.bits[1].kernel.name = "sm90";
  EXPECT_TRUE(result.ok());
  result.options.device = 0;
  EXPECT_FALSE(result.ok());
  const std::string why = "no kernel ran on the device";
  result.block_scaled = {{"state", "unsupported"}, {"reason", ""}};
  EXPECT_NE(summary_of(result, describe_selftest(result)).find(why), std::string::npos);
  result.bits[1].state = BitsState::kNoPromise;
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(summary_of(result, describe_selftest(result)).find(why), std::string::npos);
}

TEST(Selftest, BytesThatOneSideLacksDiffer) {
  const auto differing = [](const OutputRows& expected, const OutputRows& got) {
    const Difference both = compare_rows(expected, got);
    EXPECT_EQ(compare_rows(got, expected).differing, both.differing);
    EXPECT_EQ(both.first.empty(), both.differing == 0);
    return both.differing;
  };
  EXPECT_EQ(differing({"abc", "de"}, {"abc", "de"}), 0);
  EXPECT_EQ(differing({"abc", "de"}, {"abc", ""}), 0);  // left out
  EXPECT_EQ(differing({"abc", "de"}, {"axc", "de"}), 1);
  EXPECT_EQ(differing({"abc", "de"}, {"a", "de"}), 2);
  EXPECT_EQ(differing({"abc", "de"}, {"abc"}), 2);
}

}  // namespace
}  // namespace isobit::cli
