#include "ops/linear_logp/cuda/kernels.h"

#include "ops/linear_logp/cuda/run.h"
#include "ops/linear_logp/sm80/launch.h"
#include "ops/linear_logp/sm90/launch.h"

namespace isobit::linear_logp::cuda {

Status takes_sm80(const Params&, const DeviceProperties&) { return Status(); }

Status takes_sm90(const Params& p, const DeviceProperties&) {
  return p.purpose == Purpose::kMerge ? Status() : sm90::check_operands(p);
}

Status run_sm80(const Params& p, void* stream) { return run(p, sm80::choose, stream); }
Status run_sm90(const Params& p, void* stream) { return run(p, sm90::choose, stream); }

}  // namespace isobit::linear_logp::cuda
