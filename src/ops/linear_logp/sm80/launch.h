// The mma.sync kernel behind the launch sequence that all architectures share.
#pragma once

#include "ops/linear_logp/cuda/run.h"

namespace isobit::linear_logp::sm80 {

// Slots of a chunk; any shape, stride and alignment.
Status launch(const cuda::Job& job, void* scratch, void* stream);

inline cuda::Producer choose(int64_t) { return {cuda::SlotKind::kLeaf, false, 0, launch}; }

}  // namespace isobit::linear_logp::sm80
