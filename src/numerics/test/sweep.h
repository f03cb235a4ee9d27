// How densely a test walks the 2^32 bit patterns of fp32: all of them when the environment sets ISOBIT_EXHAUSTIVE, else
// a sample.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace isobit::numerics {

inline bool exhaustive() { return std::getenv("ISOBIT_EXHAUSTIVE") != nullptr; }

// The distance between two tested patterns. sample: an odd stride, so that a long walk meets every low bit pattern.
inline uint64_t sweep_stride(uint64_t sample) { return exhaustive() ? 1 : sample; }

}  // namespace isobit::numerics
