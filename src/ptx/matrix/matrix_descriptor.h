// Operands of wgmma and tcgen05 in shared memory.
#pragma once
#include <cstdint>

#include "ptx/engine/engine.h"
#include "ptx/memory/tensor_map.h"

namespace isobit::ptx {

constexpr uint32_t kMatrixPiece = 16;  // bytes that lie together in every layout: eight elements of 16 bits

struct MatrixDescriptor {
  uint32_t start = 0, leading = 0, stride = 0;
  Swizzle swizzle = Swizzle::kNone;
};

MatrixDescriptor wgmma_descriptor(uint64_t bits);
MatrixDescriptor tensor_descriptor(uint64_t bits);  // of tcgen05

// Where piece `piece` of row `row` lies in the K-major layout.
uint32_t k_major_piece(const MatrixDescriptor& d, uint32_t row, uint32_t piece);

// The bytes of one piece, as an asynchronous operation reads them.
const std::byte* read_piece(Cta& cta, uint32_t offset, const AsyncOperation& operation);

// Reads `rows` rows of 16 elements of 16 bits, or of 32 bytes of anything; K-major, or with `mn_major` in the MN-major
// layout.
void read_matrix(Cta& cta, const MatrixDescriptor& d, int rows, bool mn_major, uint16_t* out,
                 const AsyncOperation& operation);

}  // namespace isobit::ptx
