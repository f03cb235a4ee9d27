// The bytes of contract linear_logp/sm90-k16-f25/1, frozen: hashes of every output of calls that touch each rule of
// docs/bit-contract.md section 3. No library distribution or function takes part in the operands, so that they are the
// same everywhere. A kernel that offers the id must give these hashes.
#pragma once

#include <span>

#include "ops/linear_logp/test/problem.h"

namespace isobit::linear_logp::test {

struct FrozenCase {
  const char* name;
  isobit_dtype dtype;
  Shape shape;
  float weight_scale;   // a power of two; logits have a deviation of about 1.3 weight_scale sqrt(H)
  bool options;         // bias, softcap, temperatures, and rows that are special in every way
  uint64_t outputs;     // hash of logp, lse, entropy, rank and target_logit
  uint64_t everything;  // with a top list of kFrozenTop ids
};
inline constexpr int64_t kFrozenTop = 7;
inline constexpr unsigned kFrozenOutputs =
    Outputs::kLogp | Outputs::kLse | Outputs::kEntropy | Outputs::kRank | Outputs::kLogit;

std::span<const FrozenCase> frozen_cases();
Problem frozen_problem(const FrozenCase& c);

// Words of SplitMix64.
class FrozenWords {
 public:
  explicit FrozenWords(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  // Bell-shaped, mean 0, deviation 1.15; exact in fp32.
  float bell() {
    const uint64_t x = next();
    const int64_t sum = static_cast<int64_t>((x & 0xFFFF) + (x >> 16 & 0xFFFF) + (x >> 32 & 0xFFFF) + (x >> 48));
    return static_cast<float>(sum - 2 * 0xFFFF) * 0x1p-15f;
  }

 private:
  uint64_t state_;
};

// FNV-1a over 32-bit words.
uint64_t hash_words(const std::string& bytes);

}  // namespace isobit::linear_logp::test
