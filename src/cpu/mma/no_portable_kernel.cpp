#include "cpu/mma/layout.h"

namespace isobit::cpu::mma {

const Kernel* portable_kernel() { return nullptr; }

}  // namespace isobit::cpu::mma
