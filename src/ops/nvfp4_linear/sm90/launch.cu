// Instantiates and launches the __global__ functions of kernel.cuh: their device code is compiled here.
#include "ops/nvfp4_linear/sm90/launch.h"

#include "nvfp4/few_rows_launch.h"
#include "nvfp4/tile_launch.h"
#include "nvfp4/wgmma_launch.h"
#include "ops/nvfp4_linear/sm90/few_rows.cuh"
#include "ops/nvfp4_linear/sm90/kernel.cuh"

namespace isobit::nvfp4_linear::sm90 {
namespace {

template <int kTokens, int kGroups>
Nvfp4Variant variant() {
  using Tile = Config<kTokens, kGroups>;
  return nvfp4_variant<Tile>(reinterpret_cast<const void*>(&nvfp4_linear_wgmma<Tile>));
}

// WGMMA costs more than mma.sync for 8 rows of x and less for more; where blocks are small, for more than 16.
template <int kTokens, int kRows, int kDepth, int kStages, bool kWgmma>
Nvfp4FewVariant few_variant() {
  using Tile = device::Nvfp4FewConfig<kTokens, kRows, kDepth, kStages, kWgmma>;
  return nvfp4_few_variant<Tile>(reinterpret_cast<const void*>(&nvfp4_linear_few<Tile>));
}

template <int kTokens, int kDecoders, int kShare>
Nvfp4FewVariant chain_variant() {
  using Tile = device::Nvfp4ChainConfig<kTokens, kDecoders, kShare>;
  return nvfp4_chain_variant<Tile>(reinterpret_cast<const void*>(&nvfp4_linear_chain<Tile>));
}

Nvfp4WgmmaCall call_of(const Params& p) {
  return {p.weight, p.rows, p.columns, p.k, p.device.id, p.workspace, p.workspace_bytes};
}

bool is_few(const Params& p) { return nvfp4_is_chain(p.rows, p.columns) || nvfp4_rows_are_few(p.rows, p.k); }

Status run_few(const Params& p, void* stream) {
  FewJob job = {{}, nvfp4_operand(p.x, p.rows, p.k), output_of(p)};
  const Nvfp4FewVariant chains[] = {chain_variant<8, 8, 1>(), chain_variant<16, 12, 1>(), chain_variant<32, 12, 2>()};
  const Nvfp4FewVariant wide[] = {few_variant<8, 256, 256, 4, false>(), few_variant<8, 64, 256, 6, false>(),
                                  few_variant<16, 256, 256, 4, true>(), few_variant<16, 64, 256, 6, false>(),
                                  few_variant<32, 256, 128, 5, true>(), few_variant<32, 64, 256, 6, true>()};
  const std::span<const Nvfp4FewVariant> variants =
      nvfp4_is_chain(p.rows, p.columns) ? std::span<const Nvfp4FewVariant>(chains) : wide;
  return run_few_rows(call_of(p), variants, &job, &job.plan, stream);
}

}  // namespace

Status takes(const Params& params, const DeviceProperties&) { return nvfp4_wgmma_takes(call_of(params)); }

WorkspaceBytes workspace(const Params& params) {
  return is_few(params) ? WorkspaceBytes{} : nvfp4_wgmma_workspace(params.rows, params.k);
}

Status run(const Params& p, void* stream) {
  if (is_few(p)) return run_few(p, stream);
  Job job = {};
  job.x = nvfp4_operand(p.x, p.rows, p.k);
  job.out = output_of(p);
  const Nvfp4Variant variants[] = {variant<32, 1>(),  variant<64, 1>(),  variant<128, 1>(), variant<200, 1>(),
                                   variant<208, 1>(), variant<224, 1>(), variant<248, 1>(), variant<104, 2>(),
                                   variant<112, 2>(), variant<128, 2>(), variant<248, 2>()};
  return run_nvfp4_wgmma(call_of(p), variants, reinterpret_cast<const void*>(&nvfp4_linear_unpack),
                         {&job, &job.plan, &job.unpack}, stream);
}

}  // namespace isobit::nvfp4_linear::sm90
