// The WGMMA kernels behind the launch sequence that all architectures share.
#pragma once

#include "ops/linear_logp/cuda/run.h"

namespace isobit::linear_logp::sm90 {

// What the copy engine demands of the operands; the refusal says what it found.
Status check_operands(const Params& p);

// Few rows stream the weights, many go in tiles.
cuda::Producer choose(int64_t rows);

}  // namespace isobit::linear_logp::sm90
