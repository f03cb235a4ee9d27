#include "ops/linear_logp/cuda/kernels.h"

#include "ops/linear_logp/cuda/backward_run.h"
#include "ops/linear_logp/cuda/run.h"
#include "ops/linear_logp/sm80/backward_launch.h"
#include "ops/linear_logp/sm80/launch.h"
#include "ops/linear_logp/sm90/backward_launch.h"
#include "ops/linear_logp/sm90/launch.h"

namespace isobit::linear_logp::cuda {

Status takes_sm80(const Params&, const DeviceProperties&) { return Status(); }

Status takes_sm90(const Params& p, const DeviceProperties&) {
  return p.purpose == Purpose::kMerge ? Status() : sm90::check_operands(p);
}

Status run_sm80(const Params& p, void* stream) { return run(p, sm80::choose, stream); }
Status run_sm90(const Params& p, void* stream) { return run(p, sm90::choose, stream); }

Status takes_backward_sm80(const BackwardParams&, const DeviceProperties&) { return Status(); }

Status takes_backward_sm90(const BackwardParams& p, const DeviceProperties&) {
  const bool merges = p.purpose == BackwardPurpose::kMerge || p.purpose == BackwardPurpose::kSaveMerge;
  return merges ? Status() : sm90::check_operands(p.forward);
}

Status run_backward_sm80(const BackwardParams& p, void* stream) {
  return run_backward(p, sm80::backward_kernels(), sm80::choose, stream);
}
Status run_backward_sm90(const BackwardParams& p, void* stream) {
  return run_backward(p, sm90::backward_kernels(), sm90::choose, stream);
}

WorkspaceBytes backward_workspace_sm80(const BackwardParams& p) {
  return backward_workspace(p, sm80::backward_kernels());
}
WorkspaceBytes backward_workspace_sm90(const BackwardParams& p) {
  return backward_workspace(p, sm90::backward_kernels());
}

}  // namespace isobit::linear_logp::cuda
