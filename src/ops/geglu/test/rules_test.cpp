// The rules that choose between the CUDA schedules: pure functions of capability, rows and columns.
#include <gtest/gtest.h>

#include <string>

#include "ops/geglu/dispatch.h"

namespace isobit::geglu {
namespace {

TEST(GegluRules, ComputeCapability103KeepsTheWidthThreshold) {
  EXPECT_EQ(rule_for(103, 8192, 8192).schedule, Schedule::kRow);
  EXPECT_EQ(rule_for(103, 8192, 8193).schedule, Schedule::kTile);
  EXPECT_EQ(rule_for(103, 8192, 16384).schedule, Schedule::kTile);
  EXPECT_EQ(rule_for(103, 1, 14336).schedule, Schedule::kTile);
  EXPECT_EQ(rule_for(103, 8192, 14336).tile, (cuda::Tile{1024, 4}));
  EXPECT_EQ(rule_for(103, 8192, 1).schedule, Schedule::kRow);
}

TEST(GegluRules, OtherCapabilitiesHaveTheirOwn) {
  for (const int capability : {80, 86, 89, 90, 100, 110, 120, 121}) {
    for (const int64_t columns : {1, 8192, 8193, 131072}) {
      EXPECT_EQ(rule_for(capability, 8192, columns).schedule, Schedule::kTile) << capability;
      EXPECT_EQ(rule_for(capability, 8192, columns).tile, (cuda::Tile{1024, 4}));
    }
  }
}

TEST(GegluRules, EveryRuleSaysWhy) {
  for (int i = 0; rule_at(i) != nullptr; ++i) {
    EXPECT_NE(std::string(rule_at(i)->reason), "");
    EXPECT_NE(std::string(rule_at(i)->measurement), "");
  }
}

}  // namespace
}  // namespace isobit::geglu
