// The 32-bit instruction descriptor of tcgen05.mma.
#pragma once
#include <cstdint>

#include "ptx/arithmetic/mma_arithmetic.h"

namespace isobit::ptx {

struct TensorInstruction {
  int m = 0, n = 0;
  MmaFormat format = MmaFormat::kBf16;  // of kind::f16
  bool a_mn_major = false, b_mn_major = false;
  bool negate_a = false, negate_b = false;
};

// Both throw for a descriptor that breaks a rule or asks for something that is not modelled.
TensorInstruction f16_instruction(uint32_t bits);
// kind::mxf4nvf4 with blocks of 16: E2M1 elements, UE4M3 scales, K = 64.
TensorInstruction nvfp4_instruction(uint32_t bits);

}  // namespace isobit::ptx
