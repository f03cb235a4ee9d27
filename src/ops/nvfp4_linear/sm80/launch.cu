// Instantiates and launches the __global__ functions of kernel.cuh: their device code is compiled here.
#include "ops/nvfp4_linear/sm80/launch.h"

#include "nvfp4/scaled_launch.h"
#include "nvfp4/tile_launch.h"
#include "ops/nvfp4_linear/sm80/kernel.cuh"

namespace isobit::nvfp4_linear::sm80 {
namespace {

Job job_of(const Params& p) {
  Job job = {};
  job.x = nvfp4_operand(p.x, p.rows, p.k);
  job.weight = nvfp4_operand(p.weight, p.columns, p.k);
  job.x_scale_device = p.x_scale.device;
  job.weight_scale_device = p.weight_scale.device;
  job.x_scale = p.x_scale.value;
  job.weight_scale = p.weight_scale.value;
  const int64_t element = dtype_bytes(p.dtype);
  job.out = static_cast<char*>(p.out);
  job.out_row_bytes = p.out_stride * element;
  job.row_tiles = nvfp4_row_tiles(p.rows);
  job.pairs = reinterpret_cast<uintptr_t>(p.out) % static_cast<uint64_t>(2 * element) == 0 && p.out_stride % 2 == 0;
  return job;
}

const void* kernel_of(isobit_dtype dtype) {
  return dtype == ISOBIT_BF16 ? reinterpret_cast<const void*>(&nvfp4_linear_tile<numerics::Bf16>)
                              : reinterpret_cast<const void*>(&nvfp4_linear_tile<numerics::Fp32>);
}

}  // namespace

Status takes(const Params& params, const DeviceProperties& device) {
  if (Status s = refuse_in_place_of_scaled_tiles(params.kernel, device); !s.ok()) return s;
  return nvfp4_tiles_fit(params.rows, params.columns, device);
}

WorkspaceBytes workspace(const Params&) { return {}; }

Status run(const Params& params, void* stream) {
  Job job = job_of(params);
  void* arguments[] = {&job};
  return launch_nvfp4_tiles(params.device.id, kernel_of(params.dtype), params.rows, params.columns, arguments, stream);
}

}  // namespace isobit::nvfp4_linear::sm80
