// Tensor maps: the rules of cuTensorMapEncodeTiled, and this machine's own 128-byte form of a map.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace isobit::ptx {

enum class Swizzle : uint8_t { kNone = 0, k32 = 1, k64 = 2, k128 = 3 };

struct TensorMapDescription {
  uint32_t element_bytes = 2;
  uint32_t rank = 2;
  uint64_t address = 0;
  uint64_t shape[5] = {};         // elements, innermost first
  uint64_t stride_bytes[4] = {};  // of dimensions 1 and up
  uint32_t box[5] = {};
  uint32_t element_strides[5] = {1, 1, 1, 1, 1};
  Swizzle swizzle = Swizzle::kNone;
  uint32_t packed = 1;  // 2: each byte of dimension 0 is two 4-bit elements, which shape, box and coordinates count
};

// What stands in the 128 opaque bytes. The second word stays unused: launch code of some libraries patches it.
struct TensorMapBits {
  uint32_t magic;
  uint8_t element_bytes, rank;
  Swizzle swizzle;
  uint8_t packed;
  uint64_t unused;
  uint64_t address;
  uint64_t shape[5];
  uint64_t stride_bytes[4];
  uint32_t box[5];
};
static_assert(sizeof(TensorMapBits) <= 128);

constexpr uint32_t kTensorMapMagic = 0x70A7B175;

// Writes 128 bytes to `out`, or returns which rule the description breaks.
std::optional<std::string> encode_tensor_map(const TensorMapDescription& description, void* out);

// A shared-memory address after the swizzle: address bits 4 to 6 are xored with bits 7 to 9, as many of them as the
// mode has.
constexpr uint32_t swizzled(uint32_t address, Swizzle mode) {
  constexpr uint32_t kMasks[] = {0, 0x10, 0x30, 0x70};
  return address ^ ((address >> 3) & kMasks[static_cast<size_t>(mode)]);
}
constexpr uint32_t swizzle_bytes(Swizzle mode) {
  return mode == Swizzle::kNone ? 0 : 16u << static_cast<uint32_t>(mode);
}

}  // namespace isobit::ptx
