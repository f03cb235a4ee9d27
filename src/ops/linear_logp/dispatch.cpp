#include "ops/linear_logp/dispatch.h"

namespace isobit::linear_logp {

const KernelInfo* kernel_at(int) { return nullptr; }

}  // namespace isobit::linear_logp
