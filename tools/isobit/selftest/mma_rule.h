// A family of rules that a tensor core may follow, and which of them gives a device's outputs. `sm90-k16-f25` of
// docs/bit-contract.md is the default member.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "numerics/hopper_mma.h"

namespace isobit::cli {

// The terms of a sum are taken `group` at a time, ascending; a group's sum is the next one's addend. In a group every
// term, the addend too, is cut to a multiple of 2^(E - kept_bits), E the largest exponent among them.
struct MmaRule {
  int group = 16;
  int kept_bits = 25;
  bool floors = false;      // terms are cut toward minus infinity, not toward zero
  bool normalised = false;  // a product in [2, 4) counts with the next exponent
  bool nearest = false;     // a group's sum is rounded to nearest even, not toward zero
  std::string text() const;
};

// c plus the terms, all finite.
float apply_rule(const MmaRule& rule, std::span<const numerics::MmaTerm> terms, float c);

// One output: its terms, its addend, and what the device made of them.
struct RuleSample {
  std::vector<numerics::MmaTerm> terms;
  float c = 0;
  uint32_t output = 0;
};

struct RuleFit {
  MmaRule rule;
  int64_t differing = 0;
};

// The rules with the fewest outputs that differ, at most `most` of them, of groups of the sizes given and 20 to `bits`
// kept bits. Zeros of both signs count as equal here, and infinities must be the overflow that a rule gives.
std::vector<RuleFit> fit_rules(std::span<const RuleSample> samples, std::span<const int> groups, int bits, size_t most);

}  // namespace isobit::cli
