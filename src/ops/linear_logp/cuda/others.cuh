// What a row's other ids add up to beside its lead, in the slot that holds the lead; docs/bit-contract.md section 3.7.
// Leads are found before the big product, which leaves the logits of their leaves; the merge goes on from here.
#pragma once

#include "device/ptx/synchronize.cuh"
#include "ops/linear_logp/cuda/unit_sum.cuh"

namespace isobit::linear_logp::cuda {

constexpr int kOthersThreads = 256;

// The row's target with the largest logit, of equal ones the lowest id. Several targets have their logits in
// job.target_logit already; a single one does not need it.
__global__ void __launch_bounds__(kOthersThreads) find_leads(const __grid_constant__ Job job) {
  const Params& p = job.p;
  const int64_t row = int64_t{blockIdx.x} * kOthersThreads + threadIdx.x;
  if (row >= p.rows) return;
  int64_t lead = -1;
  float largest = 0.0f;
  for (int64_t k = 0; k < p.targets; ++k) {
    const int64_t id = target_at(p, row, k);
    if (!has_logit(p, id)) continue;
    const Matrix<float>& logit = job.target_logit;
    const float z = p.targets == 1 ? 0.0f : logit.data[row * logit.row_stride + k * logit.column_stride];
    if (!(lead < 0 || z > largest || (z == largest && id < lead))) continue;
    lead = id;
    largest = z;
  }
  job.saved.lead[row] = static_cast<int32_t>(lead);
}

// One warp a row.
__global__ void __launch_bounds__(kOthersThreads) sum_others(const __grid_constant__ Job job) {
  device::ptx::launch_dependents();
  const Params& p = job.p;
  const int64_t row = (int64_t{blockIdx.x} * kOthersThreads + threadIdx.x) / kWarpThreads;
  const int32_t lead = row < p.rows ? job.saved.lead[row] : -1;
  if (lead < 0) return;
  const int64_t leaf = lead / kLeaf * kLeaf;
  const int lane = threadIdx.x % kWarpThreads;
  const bool whole = is_leaf_slot(job.partials.kind, leaf - job.origin);
  float z[4];
  bool exists[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int offset = leaf_offset(lane) + 32 * i;
    const bool in_slot = whole || offset / kUnit == (lead - leaf) / kUnit;
    exists[i] = in_slot && leaf + offset < p.first_id + p.count;
    z[i] = exists[i] && leaf + offset != lead ? job.lead_leaf[row * kLeaf + offset] : kMinusInfinity;
  }
  const Node others = warp_leaf<false>(z, exists);
  if (lane != 0) return;
  job.saved.others_r[row] = others.r;
  job.saved.others_s[row] = others.s;
}

}  // namespace isobit::linear_logp::cuda
