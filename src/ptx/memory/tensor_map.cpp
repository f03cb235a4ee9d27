#include "ptx/memory/tensor_map.h"

namespace isobit::ptx {
namespace {

std::string at(const char* what, uint32_t i) { return std::string(what) + "[" + std::to_string(i) + "]"; }

std::optional<std::string> check_dimensions(const TensorMapDescription& d) {
  for (uint32_t i = 0; i < d.rank; ++i) {
    if (d.shape[i] == 0 || d.shape[i] > uint64_t{1} << 32)
      return at("shape", i) + ": expected 1 to 2^32, got " + std::to_string(d.shape[i]);
    if (d.box[i] == 0 || d.box[i] > 256) return at("box", i) + ": expected 1 to 256, got " + std::to_string(d.box[i]);
    if (d.element_strides[i] != 1)
      return at("element_strides", i) + ": expected 1, got " + std::to_string(d.element_strides[i]);
  }
  for (uint32_t i = 0; i + 1 < d.rank; ++i) {
    const uint64_t stride = d.stride_bytes[i];
    if (stride % 16 != 0 || stride >= uint64_t{1} << 40) {
      return at("stride_bytes", i) + ": expected a multiple of 16 below 2^40, got " + std::to_string(stride);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> encode_tensor_map(const TensorMapDescription& d, void* out) {
  if (d.rank < 1 || d.rank > 5) return "rank: expected 1 to 5, got " + std::to_string(d.rank);
  const bool size_known = d.element_bytes == 1 || d.element_bytes == 2 || d.element_bytes == 4 || d.element_bytes == 8;
  if (!size_known) return "element_bytes: expected 1, 2, 4 or 8, got " + std::to_string(d.element_bytes);
  if (d.address == 0 || d.address % 16 != 0)
    return "address: expected a multiple of 16, got " + std::to_string(d.address);
  if (reinterpret_cast<uint64_t>(out) % 64 != 0) return "tensor map: expected an address aligned to 64 bytes";
  if (const auto error = check_dimensions(d)) return error;
  if (d.packed == 0 || d.shape[0] % d.packed != 0 || d.box[0] % d.packed != 0)
    return "shape[0] and box[0]: expected multiples of " + std::to_string(d.packed);
  const uint32_t row = d.box[0] / d.packed * d.element_bytes;
  if (row % 16 != 0) return "box[0]: expected a multiple of 16 bytes, got " + std::to_string(row);
  if (d.swizzle != Swizzle::kNone && row > swizzle_bytes(d.swizzle)) {
    return "box[0]: expected at most " + std::to_string(swizzle_bytes(d.swizzle)) + " bytes with this swizzle, got " +
           std::to_string(row);
  }
  TensorMapBits bits{};
  bits.magic = kTensorMapMagic;
  bits.element_bytes = static_cast<uint8_t>(d.element_bytes);
  bits.rank = static_cast<uint8_t>(d.rank);
  bits.swizzle = d.swizzle;
  bits.packed = static_cast<uint8_t>(d.packed);
  bits.address = d.address;
  for (uint32_t i = 0; i < 5; ++i) {
    bits.shape[i] = i < d.rank ? d.shape[i] : 1;
    bits.box[i] = i < d.rank ? d.box[i] : 1;
    if (i < 4) bits.stride_bytes[i] = i + 1 < d.rank ? d.stride_bytes[i] : 0;
  }
  bits.shape[0] /= d.packed;
  bits.box[0] /= d.packed;
  std::memset(out, 0, 128);
  std::memcpy(out, &bits, sizeof bits);
  return std::nullopt;
}

}  // namespace isobit::ptx
