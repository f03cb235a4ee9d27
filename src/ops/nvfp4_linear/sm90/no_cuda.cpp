// Stands in for launch.cu in a build without CUDA. Dispatch refuses the rows before they are reached.
#include "ops/nvfp4_linear/sm90/launch.h"

namespace isobit::nvfp4_linear::sm90 {

Status takes(const Params&, const DeviceProperties&) { return fail(ISOBIT_UNSUPPORTED, "not in this build"); }
WorkspaceBytes workspace(const Params&) { return {}; }
Status run(const Params&, void*) { return fail(ISOBIT_UNSUPPORTED, "not in this build"); }

}  // namespace isobit::nvfp4_linear::sm90
