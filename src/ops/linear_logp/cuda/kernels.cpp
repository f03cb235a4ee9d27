#include "ops/linear_logp/cuda/kernels.h"

#include "ops/linear_logp/cuda/run.h"
#include "ops/linear_logp/sm80/launch.h"
#include "ops/linear_logp/sm90/launch.h"

namespace isobit::linear_logp::cuda {

Status takes_sm80(const Params& p, const DeviceProperties&) {
  if (p.top > 0) return refuse("top_id", "no top list on a GPU", "T = %lld", static_cast<long long>(p.top));
  return Status();
}

Status takes_sm90(const Params& p, const DeviceProperties& device) {
  if (Status s = takes_sm80(p, device); !s.ok()) return s;
  return p.purpose == Purpose::kMerge ? Status() : sm90::check_operands(p);
}

Status run_sm80(const Params& p, void* stream) { return run(p, sm80::choose, stream); }
Status run_sm90(const Params& p, void* stream) { return run(p, sm90::choose, stream); }

}  // namespace isobit::linear_logp::cuda
