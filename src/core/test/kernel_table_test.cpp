// What a row of the table of kernels says about a device.
#include "core/kernel_table.h"

#include <gtest/gtest.h>

#include <string>

#include "core/build_config.h"
#include "core/capability.h"
#include "core/test/launch_recorder.h"

namespace isobit {
namespace {

constexpr KernelInfo kRange = {"op", "sm100", "100f, 103a, 110a", "op/rule/0", ISOBIT_CUDA, 100, 110, true};
constexpr KernelInfo kOne = {"op", "sm90", "90a", "op/rule/1", ISOBIT_CUDA, 90, 90, true};

DeviceProperties device_of(int capability) {
  DeviceProperties properties;
  properties.capability = capability;
  return properties;
}

TEST(KernelRow, SaysTheWholeRangeThatItNeeds) {
  test::LaunchRecorder mock;
  const ScopedRuntime scope(&mock);
  EXPECT_TRUE(check_row(kRange, {ISOBIT_CUDA, 0}, device_of(103)).ok());
  EXPECT_EQ(check_row(kRange, {ISOBIT_CUDA, 2}, device_of(120)).code(), ISOBIT_UNSUPPORTED);
  EXPECT_STREQ(last_error(), "needs compute capability 10.0 to 11.0, device 2 has 12.0");
  EXPECT_EQ(check_row(kOne, {ISOBIT_CUDA, 0}, device_of(80)).code(), ISOBIT_UNSUPPORTED);
  EXPECT_STREQ(last_error(), "needs compute capability 9.0, device 0 has 8.0");
}

// A build for some architectures refuses the others by name; nothing is left to a launch that would fail.
TEST(KernelRow, ABuildWithoutCodeForTheDeviceIsARefusal) {
  for (const int capability : {100, 103, 110}) {
    const Status status = check_row(kRange, {ISOBIT_CUDA, 1}, device_of(capability));
    ASSERT_EQ(status.ok(), has_code_for(capability, kCudaCapabilities)) << capability;
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), ISOBIT_UNSUPPORTED);
    EXPECT_EQ(std::string(last_error()).rfind("this build is for architectures ", 0), 0u) << last_error();
  }
}

TEST(KernelRow, IsBuiltIfOneOfItsArchitecturesIs) {
  EXPECT_TRUE(names_any("90a", {90}));
  EXPECT_TRUE(names_any("100f, 103a, 110a, 110f", {80, 110}));
  EXPECT_FALSE(names_any("80, 86, 89, 100, 103, 110, 120, 121", {90}));
  EXPECT_FALSE(names_any("100f", {10, 1000}));
  EXPECT_FALSE(names_any("90", {}));
}

TEST(KernelRow, MachineCodeRunsOnLaterDevicesOfItsMajorVersion) {
  EXPECT_TRUE(has_code_for(86, {80, 90}));
  EXPECT_TRUE(has_code_for(121, {120}));
  EXPECT_FALSE(has_code_for(80, {86, 90}));
  EXPECT_FALSE(has_code_for(100, {80, 90, 110}));
  EXPECT_FALSE(has_code_for(90, {}));
}

}  // namespace
}  // namespace isobit
