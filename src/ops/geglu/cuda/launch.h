// The CUDA schedules of geglu.
#pragma once

#include "ops/geglu/cuda/config.h"

namespace isobit::geglu::cuda {

// Both write the same bits. `tile`: columns a multiple of the chunk of a warp (256, or 128 for fp32), 1 to kMaxWarps
// warps.
Status launch_tile(const Params& params, const Tile& tile, void* stream);
Status launch_row(const Params& params, void* stream);

}  // namespace isobit::geglu::cuda
