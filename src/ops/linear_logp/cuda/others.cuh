// What the others of a row's lead add up to, as far as the slot goes that holds the lead; docs/bit-contract.md section
// 3.7. The big product has left the dot products of the lead's leaf; one warp a row makes its units without the lead.
#pragma once

#include "device/ptx/synchronize.cuh"
#include "ops/linear_logp/cuda/unit_sum.cuh"

namespace isobit::linear_logp::cuda {

constexpr int kOthersThreads = 256;

__global__ void __launch_bounds__(kOthersThreads) sum_others(const __grid_constant__ Job job) {
  device::ptx::launch_dependents();
  const Params& p = job.p;
  const int64_t row = (int64_t{blockIdx.x} * kOthersThreads + threadIdx.x) / kWarpThreads;
  const int32_t lead = row < p.rows ? lead_of(job, row) : -1;
  if (lead < 0) return;
  const int64_t leaf = lead / kLeaf * kLeaf;
  const int lane = threadIdx.x % kWarpThreads;
  const float temperature = temperature_at(p, row);
  const bool whole_leaf = is_leaf_slot(job.partials.kind, leaf - job.origin);
  float z[4];
  bool exists[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t id = leaf + leaf_offset(lane) + 32 * i;
    // Units of the leaf that lie in another slot are left out.
    const bool in_slot = whole_leaf || i / 2 == (lead - leaf) / kUnit;
    exists[i] = in_slot && id < p.first_id + p.count;
    z[i] = !exists[i] || id == lead
               ? kMinusInfinity
               : logit(p, job.lead_dots[row * kLeaf + leaf_offset(lane) + 32 * i], id, temperature);
  }
  const Node others = warp_leaf<false>(z, exists);
  if (lane != 0) return;
  job.saved.others_r[row] = others.r;
  job.saved.others_s[row] = others.s;
}

}  // namespace isobit::linear_logp::cuda
