// Instantiates and launches the __global__ functions of kernel.cuh: their device code is compiled here.
#include "ops/nvfp4_linear/sm90/launch.h"

#include "nvfp4/tile_launch.h"
#include "nvfp4/wgmma_launch.h"
#include "ops/nvfp4_linear/sm90/kernel.cuh"

namespace isobit::nvfp4_linear::sm90 {
namespace {

template <int kTokens, int kGroups>
Nvfp4Variant variant() {
  using Tile = Config<kTokens, kGroups>;
  return nvfp4_variant<Tile>(reinterpret_cast<const void*>(&nvfp4_linear_wgmma<Tile>));
}

Nvfp4WgmmaCall call_of(const Params& p) {
  return {p.weight, p.rows, p.columns, p.k, p.device.id, p.workspace, p.workspace_bytes};
}

}  // namespace

Status takes(const Params& params, const DeviceProperties&) { return nvfp4_wgmma_takes(call_of(params)); }

WorkspaceBytes workspace(const Params& params) { return nvfp4_wgmma_workspace(params.rows, params.k); }

Status run(const Params& p, void* stream) {
  Job job = {};
  job.x = nvfp4_operand(p.x, p.rows, p.k);
  job.x_scale_device = p.x_scale.device;
  job.weight_scale_device = p.weight_scale.device;
  job.x_scale = p.x_scale.value;
  job.weight_scale = p.weight_scale.value;
  const int64_t element = dtype_bytes(p.dtype);
  job.out = static_cast<char*>(p.out);
  job.out_row_bytes = p.out_stride * element;
  job.columns = static_cast<int32_t>(p.columns);
  job.pairs = reinterpret_cast<uintptr_t>(p.out) % static_cast<uint64_t>(2 * element) == 0 && p.out_stride % 2 == 0;
  job.wide = p.dtype == ISOBIT_FP32;
  const Nvfp4Variant variants[] = {variant<8, 1>(),   variant<32, 1>(),  variant<64, 1>(), variant<104, 2>(),
                                   variant<112, 2>(), variant<128, 2>(), variant<248, 2>()};
  return run_nvfp4_wgmma(call_of(p), variants, reinterpret_cast<const void*>(&nvfp4_linear_unpack),
                         {&job, &job.plan, &job.unpack}, stream);
}

}  // namespace isobit::nvfp4_linear::sm90
