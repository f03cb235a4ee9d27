// Instantiates and launches the __global__ functions of kernel.cuh: their device code is compiled here.
#include "ops/nvfp4_geglu/sm80/launch.h"

#include "nvfp4/scaled_launch.h"
#include "nvfp4/tile_launch.h"
#include "ops/nvfp4_geglu/sm80/kernel.cuh"

namespace isobit::nvfp4_geglu::sm80 {
namespace {

Job job_of(const Params& p) {
  Job job = {};
  job.x = nvfp4_operand(p.x, p.rows, p.k);
  job.weight = nvfp4_operand(p.weight, p.columns(), p.k);
  job.scales = global_scales_of(p);
  job.codes = p.out.codes;
  job.codes_row_bytes = p.out.row_stride;
  job.out_scales = p.out.scales;
  job.out_layout = p.out.layout;
  job.row_tiles = nvfp4_row_tiles(p.rows);
  job.padded_rows = p.padded_rows();
  job.padded_blocks = p.padded_blocks();
  job.out_blocks = static_cast<int32_t>(p.out_blocks());
  job.vector_stores = reinterpret_cast<uintptr_t>(p.out.codes) % 8 == 0 && p.out.row_stride % 8 == 0;
  return job;
}

const void* kernel_of(numerics::Gelu gelu) {
  return gelu == Gelu::kTanh ? reinterpret_cast<const void*>(&nvfp4_geglu_tile<Gelu::kTanh>)
                             : reinterpret_cast<const void*>(&nvfp4_geglu_tile<Gelu::kErf>);
}

}  // namespace

Status takes(const Params& params, const DeviceProperties& device) {
  if (Status s = refuse_in_place_of_scaled_tiles(params.kernel, device); !s.ok()) return s;
  return nvfp4_tiles_fit(params.rows, params.columns(), device);
}

WorkspaceBytes workspace(const Params&) { return {}; }

Status run(const Params& params, void* stream) {
  Job job = job_of(params);
  void* arguments[] = {&job};
  return launch_nvfp4_tiles(params.device.id, kernel_of(params.gelu), params.rows, params.columns(), arguments, stream);
}

}  // namespace isobit::nvfp4_geglu::sm80
