// Stands in for the GPU rows in a build without CUDA; the table says that they are not built.
#include "ops/linear_logp/cuda/kernels.h"

namespace isobit::linear_logp::cuda {
namespace {

Status not_built() { return fail(ISOBIT_UNSUPPORTED, "not in this build"); }

}  // namespace

Status takes_sm90(const Params&, const DeviceProperties&) { return not_built(); }
Status run_sm90(const Params&, void*) { return not_built(); }
Status takes_sm80(const Params&, const DeviceProperties&) { return not_built(); }
Status run_sm80(const Params&, void*) { return not_built(); }
Status takes_backward_sm80(const BackwardParams&, const DeviceProperties&) { return not_built(); }
Status run_backward_sm80(const BackwardParams&, void*) { return not_built(); }
WorkspaceBytes backward_workspace_sm80(const BackwardParams&) { return {}; }
Status takes_backward_sm90(const BackwardParams&, const DeviceProperties&) { return not_built(); }
Status run_backward_sm90(const BackwardParams&, void*) { return not_built(); }
WorkspaceBytes backward_workspace_sm90(const BackwardParams&) { return {}; }
WorkspaceBytes workspace(const Params&) { return {}; }

}  // namespace isobit::linear_logp::cuda
