// Shared-memory matrix descriptors of wgmma (PTX ISA 9.7.15.5.1).
#pragma once

#include <cstdint>

#include "numerics/host_device.h"

namespace isobit::device {

// K-major rows of 128 bytes in the 128-byte swizzle that the copy engine writes; `shared` is aligned to 1024 bytes.
// Eight rows are 1024 bytes apart, the leading offset is not used.
ISOBIT_HD constexpr uint64_t swizzle128_descriptor(uint32_t shared) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kEightRows = uint64_t{1024 >> 4} << 32;
  return kSwizzle128 | kEightRows | uint64_t{1} << 16 | ((shared & 0x3FFFF) >> 4);
}

// MN-major: rows of one k each hold 64 elements in 128 bytes, in the same swizzle; the next 64 elements lie
// `next_64_bytes` further on. Eight k are 1024 bytes.
ISOBIT_HD constexpr uint64_t transposed_descriptor(uint32_t shared, uint32_t next_64_bytes) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kEightK = uint64_t{1024 >> 4} << 32;
  return kSwizzle128 | kEightK | uint64_t{next_64_bytes >> 4} << 16 | ((shared & 0x3FFFF) >> 4);
}

// Steps inside such a matrix, in descriptor units.
inline constexpr uint64_t kDescriptorK16 = 32 >> 4;        // 16 elements along K
inline constexpr uint64_t kTransposedK16 = 16 * 128 >> 4;  // the same in an MN-major matrix
inline constexpr uint64_t kDescriptor64Rows = 64 * 128 >> 4;

}  // namespace isobit::device
