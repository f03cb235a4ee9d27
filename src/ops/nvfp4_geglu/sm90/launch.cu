// Instantiates and launches the __global__ functions of kernel.cuh: their device code is compiled here.
#include "ops/nvfp4_geglu/sm90/launch.h"

#include "nvfp4/few_rows_launch.h"
#include "nvfp4/tile_launch.h"
#include "nvfp4/wgmma_launch.h"
#include "ops/nvfp4_geglu/sm90/few_rows.cuh"
#include "ops/nvfp4_geglu/sm90/kernel.cuh"

namespace isobit::nvfp4_geglu::sm90 {
namespace {

template <int kTokens, int kGroups, int kLastTokens = 0>
Nvfp4Variant variant() {
  using Tile = Config<kTokens, kGroups, kLastTokens>;
  return nvfp4_variant<Tile>(reinterpret_cast<const void*>(&nvfp4_geglu_wgmma<Tile>));
}

// WGMMA costs more than mma.sync for 8 rows of x and less for more; where blocks are small, for more than 16.
template <int kTokens, int kRows, int kDepth, int kStages, bool kWgmma>
Nvfp4FewVariant few_variant() {
  using Tile = device::Nvfp4FewConfig<kTokens, kRows, kDepth, kStages, kWgmma>;
  return nvfp4_few_variant<Tile>(reinterpret_cast<const void*>(&nvfp4_geglu_few<Tile>));
}

Nvfp4WgmmaCall call_of(const Params& p) {
  return {p.weight, p.rows, p.columns(), p.k, p.device.id, p.workspace, p.workspace_bytes};
}

Status run_few(const Params& p, void* stream) {
  FewJob job = {{}, operands_of(p)};
  const Nvfp4FewVariant variants[] = {few_variant<8, 256, 256, 4, false>(), few_variant<8, 64, 256, 6, false>(),
                                      few_variant<16, 256, 256, 4, true>(), few_variant<16, 64, 256, 6, false>(),
                                      few_variant<32, 256, 128, 5, true>(), few_variant<32, 64, 256, 6, true>()};
  return run_few_rows(call_of(p), variants, &job, &job.plan, stream);
}

}  // namespace

Status takes(const Params& params, const DeviceProperties&) { return nvfp4_wgmma_takes(call_of(params)); }

WorkspaceBytes workspace(const Params& params) {
  return nvfp4_rows_are_few(params.rows, params.k) ? WorkspaceBytes{} : nvfp4_wgmma_workspace(params.rows, params.k);
}

Status run(const Params& p, void* stream) {
  if (nvfp4_rows_are_few(p.rows, p.k)) return run_few(p, stream);
  Job job = {{}, {}, operands_of(p)};
  const Nvfp4Variant variants[] = {variant<32, 4>(),       variant<32, 1>(),       variant<64, 2>(),
                                   variant<128, 2>(),      variant<200, 2, 160>(), variant<208, 2, 168>(),
                                   variant<224, 2, 176>(), variant<248, 2, 200>(), variant<256, 2, 208>()};
  return run_nvfp4_wgmma(call_of(p), variants, reinterpret_cast<const void*>(&nvfp4_geglu_unpack),
                         {&job, &job.plan, &job.unpack}, stream);
}

}  // namespace isobit::nvfp4_geglu::sm90
