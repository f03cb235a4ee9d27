#include "ptx/matrix/matrix_descriptor.h"

#include <cstring>

#include "ptx/engine/memory_access.h"

namespace isobit::ptx {
namespace {

constexpr int kK = 16;
constexpr uint32_t kPiece = kMatrixPiece;

MatrixDescriptor common_fields(uint64_t d) {
  const auto field = [&](int bit) { return static_cast<uint32_t>(d >> bit & 0x3FFF) << 4; };
  if (d >> 49 & 7) throw ExecutionFault{FindingKind::kUnsupported, "a matrix descriptor with a base offset"};
  return {field(0), field(16), field(32), Swizzle::kNone};
}

// Eight rows of one k.
uint32_t mn_major_piece(const MatrixDescriptor& d, uint32_t piece, uint32_t k) {
  if (d.swizzle == Swizzle::kNone) return d.start + piece * d.stride + k % 8 * kPiece + k / 8 * d.leading;
  const uint32_t atom = swizzle_bytes(d.swizzle), pieces = atom / kPiece;
  return swizzled(d.start + piece % pieces * kPiece + piece / pieces * d.leading + k % 8 * atom + k / 8 * d.stride,
                  d.swizzle);
}

}  // namespace

MatrixDescriptor wgmma_descriptor(uint64_t bits) {
  constexpr Swizzle kModes[] = {Swizzle::kNone, Swizzle::k128, Swizzle::k64, Swizzle::k32};
  MatrixDescriptor d = common_fields(bits);
  d.swizzle = kModes[bits >> 62];
  return d;
}

MatrixDescriptor tensor_descriptor(uint64_t bits) {
  MatrixDescriptor d = common_fields(bits);
  if ((bits >> 46 & 7) != 1) {
    throw ExecutionFault{FindingKind::kTensorMemory,
                         "matrix descriptor: bits 46 to 48: expected 1, got " + std::to_string(bits >> 46 & 7)};
  }
  if (bits >> 52 & 1) throw ExecutionFault{FindingKind::kUnsupported, "a matrix descriptor with an absolute stride"};
  switch (bits >> 61) {
    case 0:
      break;
    case 2:
      d.swizzle = Swizzle::k128;
      break;
    case 4:
      d.swizzle = Swizzle::k64;
      break;
    case 6:
      d.swizzle = Swizzle::k32;
      break;
    default:
      throw ExecutionFault{FindingKind::kUnsupported,
                           "a matrix descriptor with swizzle mode " + std::to_string(bits >> 61)};
  }
  return d;
}

uint32_t k_major_piece(const MatrixDescriptor& d, uint32_t row, uint32_t piece) {
  if (d.swizzle == Swizzle::kNone) return d.start + row / 8 * d.stride + row % 8 * kPiece + piece * d.leading;
  return swizzled(d.start + row / 8 * d.stride + row % 8 * swizzle_bytes(d.swizzle) + piece * kPiece, d.swizzle);
}

const std::byte* read_piece(Cta& cta, uint32_t offset, const AsyncOperation& operation) {
  const SharedPlace place = locate_shared(cta, offset | cta.rank << 24, kPiece, "matrix operand");
  return access_shared_async(place, kPiece, false, operation, true);
}

void read_matrix(Cta& cta, const MatrixDescriptor& d, int rows, bool mn_major, uint16_t* out,
                 const AsyncOperation& operation) {
  const auto read = [&](uint32_t offset) {
    return reinterpret_cast<const uint16_t*>(read_piece(cta, offset, operation));
  };
  const uint32_t count = static_cast<uint32_t>(rows);
  if (!mn_major) {
    for (uint32_t r = 0; r < count; ++r) {
      for (uint32_t p = 0; p < 2; ++p) std::memcpy(out + r * kK + p * 8, read(k_major_piece(d, r, p)), kPiece);
    }
    return;
  }
  for (uint32_t p = 0; p < count / 8; ++p) {
    for (uint32_t k = 0; k < kK; ++k) {
      const uint16_t* values = read(mn_major_piece(d, p, k));
      for (uint32_t e = 0; e < 8; ++e) out[(p * 8 + e) * kK + k] = values[e];
    }
  }
}

}  // namespace isobit::ptx
