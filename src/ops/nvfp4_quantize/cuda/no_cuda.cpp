// Stands in for launch.cu in a build without CUDA. Dispatch refuses the row before it is reached.
#include "ops/nvfp4_quantize/cuda/launch.h"

namespace isobit::nvfp4_quantize::cuda {

Status takes(const Params&, const DeviceProperties&) { return fail(ISOBIT_UNSUPPORTED, "not in this build"); }
Status run(const Params&, void*) { return fail(ISOBIT_UNSUPPORTED, "not in this build"); }

}  // namespace isobit::nvfp4_quantize::cuda
