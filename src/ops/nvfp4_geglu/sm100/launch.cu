// Instantiates and launches the __global__ functions of kernel.cuh: their device code is compiled here.
#include "ops/nvfp4_geglu/sm100/launch.h"

#include "nvfp4/scaled_launch.h"
#include "ops/nvfp4_geglu/sm100/kernel.cuh"

namespace isobit::nvfp4_geglu::sm100 {
namespace {

ScaledProduct product_of(const Params& p) { return {p.x, p.weight, p.rows, p.columns(), p.k}; }

Job job_of(const Params& p, const device::ScaledPlan& plan) {
  Job job = {};
  job.plan = plan;
  job.scales = global_scales_of(p);
  job.codes = p.out.codes;
  job.codes_row_bytes = p.out.row_stride;
  job.out_scales = p.out.scales;
  job.out_layout = p.out.layout;
  job.wide = reinterpret_cast<uintptr_t>(p.out.codes) % 16 == 0 && p.out.row_stride % 16 == 0;
  job.rows = p.rows;
  job.padded_rows = p.padded_rows();
  job.padded_blocks = p.padded_blocks();
  job.blocks = p.out_blocks();
  return job;
}

template <int kBlocks>
const void* kernel_of(numerics::Gelu gelu) {
  return gelu == Gelu::kTanh ? reinterpret_cast<const void*>(&nvfp4_geglu_scaled<Gelu::kTanh, kBlocks>)
                             : reinterpret_cast<const void*>(&nvfp4_geglu_scaled<Gelu::kErf, kBlocks>);
}

Status check_output(const Nvfp4View& out) {
  if (reinterpret_cast<uintptr_t>(out.codes) % 8 != 0) {
    return refuse("out.codes", "an address aligned to 8 bytes", "%p", static_cast<void*>(out.codes));
  }
  if (out.row_stride % 8 != 0) {
    return refuse("out.codes", "stride[0] a multiple of 8", "%lld", static_cast<long long>(out.row_stride));
  }
  if (out.layout == numerics::ScaleLayout::kLinear || reinterpret_cast<uintptr_t>(out.scales) % 4 == 0) return Status();
  return refuse("out.scales", "an address aligned to 4 bytes", "%p", static_cast<void*>(out.scales));
}

}  // namespace

template <int kBlocks>
Status takes(const Params& params, const DeviceProperties& device) {
  if (Status s = scaled_tiles_take(product_of(params), kBlocks, device); !s.ok()) return s;
  return check_output(params.out);
}

template <int kBlocks>
Status run(const Params& params, void* stream) {
  const ScaledProduct product = product_of(params);
  Job job = job_of(params, scaled_plan(product, kBlocks));
  return launch_scaled_tiles(params.device.id, kernel_of<kBlocks>(params.gelu), product, kBlocks, &job, stream);
}

WorkspaceBytes workspace(const Params&) { return {}; }

template Status takes<1>(const Params&, const DeviceProperties&);
template Status takes<2>(const Params&, const DeviceProperties&);
template Status run<1>(const Params&, void*);
template Status run<2>(const Params&, void*);

}  // namespace isobit::nvfp4_geglu::sm100
