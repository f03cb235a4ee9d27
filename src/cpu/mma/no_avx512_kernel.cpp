#include "cpu/mma/layout.h"

namespace isobit::cpu::mma {

const Kernel* avx512_kernel() { return nullptr; }

}  // namespace isobit::cpu::mma
