// The mma.sync kernels of the backward pass behind the sequence that all architectures share.
#pragma once

#include "ops/linear_logp/cuda/backward_run.h"

namespace isobit::linear_logp::sm80 {

// Any shape, stride and alignment.
cuda::BackwardKernels backward_kernels();

}  // namespace isobit::linear_logp::sm80
