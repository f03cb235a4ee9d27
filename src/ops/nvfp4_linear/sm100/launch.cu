// Instantiates and launches the __global__ functions of kernel.cuh: their device code is compiled here.
#include "ops/nvfp4_linear/sm100/launch.h"

#include "nvfp4/scaled_launch.h"
#include "ops/nvfp4_linear/sm100/kernel.cuh"

namespace isobit::nvfp4_linear::sm100 {
namespace {

ScaledProduct product_of(const Params& p) { return {p.x, p.weight, p.rows, p.columns, p.k}; }

Job job_of(const Params& p, const device::ScaledPlan& plan) {
  Job job = {};
  job.plan = plan;
  job.x_scale_device = p.x_scale.device;
  job.weight_scale_device = p.weight_scale.device;
  job.x_scale = p.x_scale.value;
  job.weight_scale = p.weight_scale.value;
  job.out = static_cast<char*>(p.out);
  job.out_row_bytes = p.out_stride * dtype_bytes(p.dtype);
  job.rows = p.rows;
  job.columns = p.columns;
  job.wide = reinterpret_cast<uintptr_t>(p.out) % 16 == 0 && job.out_row_bytes % 16 == 0;
  return job;
}

template <int kBlocks>
const void* kernel_of(isobit_dtype dtype) {
  return dtype == ISOBIT_BF16 ? reinterpret_cast<const void*>(&nvfp4_linear_scaled<numerics::Bf16, kBlocks>)
                              : reinterpret_cast<const void*>(&nvfp4_linear_scaled<numerics::Fp32, kBlocks>);
}

}  // namespace

template <int kBlocks>
Status takes(const Params& params, const DeviceProperties& device) {
  return scaled_tiles_take(product_of(params), kBlocks, device);
}

template <int kBlocks>
Status run(const Params& params, void* stream) {
  const ScaledProduct product = product_of(params);
  Job job = job_of(params, scaled_plan(product, kBlocks));
  return launch_scaled_tiles(params.device.id, kernel_of<kBlocks>(params.dtype), product, kBlocks, &job, stream);
}

WorkspaceBytes workspace(const Params&) { return {}; }

template Status takes<1>(const Params&, const DeviceProperties&);
template Status takes<2>(const Params&, const DeviceProperties&);
template Status run<1>(const Params&, void*);
template Status run<2>(const Params&, void*);

}  // namespace isobit::nvfp4_linear::sm100
