// Generic addresses: global and parameter memory are host pointers; shared and local memory have windows far above
// them.
#pragma once
#include <cstdint>

namespace isobit::ptx {

constexpr uint64_t kWindowMask = uint64_t{0xF} << 60;
constexpr uint64_t kSharedWindow = uint64_t{1} << 60;  // | rank << 24 | offset
constexpr uint64_t kLocalWindow = uint64_t{2} << 60;   // | offset in the lane's own memory

constexpr uint32_t shared_rank(uint32_t address) { return address >> 24; }
constexpr uint32_t shared_offset(uint32_t address) { return address & 0xFFFFFF; }

}  // namespace isobit::ptx
