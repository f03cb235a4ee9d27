// Operands of wgmma in shared memory.
#pragma once
#include <cstdint>

#include "ptx/engine.h"

namespace isobit::ptx {

// Reads `rows` rows of 16 elements behind a 64-bit matrix descriptor; K-major, or with `mn_major` in
// the MN-major layout.
void read_matrix(Cta& cta, uint64_t descriptor, int rows, bool mn_major, uint16_t* out,
                 const AsyncOperation& operation);

}  // namespace isobit::ptx
