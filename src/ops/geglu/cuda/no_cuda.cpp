// Stands in for launch.cu in a build without CUDA. Dispatch refuses these rows before they are reached.
#include "ops/geglu/cuda/launch.h"

namespace isobit::geglu::cuda {

Status launch_tile(const Params&, const Tile&, void*) { return fail(ISOBIT_UNSUPPORTED, "tile: not in this build"); }
Status launch_row(const Params&, void*) { return fail(ISOBIT_UNSUPPORTED, "row: not in this build"); }

}  // namespace isobit::geglu::cuda
