// A small generator with the same stream everywhere.
#pragma once

#include <cstdint>

namespace isobit::test {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  uint32_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = state_ ^ state_ >> 33;
    x *= 0xFF51AFD7ED558CCDu;
    return static_cast<uint32_t>(x >> 32);
  }
  // Roughly normal, standard deviation 1.
  float normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += bits() * 0x1p-32;
    return static_cast<float>(sum - 6);
  }

 private:
  uint64_t state_;
};

}  // namespace isobit::test
