#include "ops/nvfp4_geglu/dispatch.h"

#include "core/entry_points.h"
#include "nvfp4/table.h"
#include "ops/nvfp4_geglu/contract.h"
#include "ops/nvfp4_geglu/cpu/kernel.h"
#include "ops/nvfp4_geglu/sm100/launch.h"
#include "ops/nvfp4_geglu/sm80/launch.h"
#include "ops/nvfp4_geglu/sm90/launch.h"

namespace isobit::nvfp4_geglu {
namespace {

constexpr Nvfp4Contracts kContracts = {kContract, "nvfp4_geglu/sm80-unmeasured/0", "nvfp4_geglu/sm100-unmeasured/0"};

constexpr Nvfp4Rows<Params> built_rows() {
  Nvfp4Rows<Params> rows;
  rows.cpu = {cpu::takes, cpu::run, cpu::workspace};
  if constexpr (kBuiltWithCuda) {
    rows.sm90 = {sm90::takes, sm90::run, sm90::workspace};
    rows.sm80 = {sm80::takes, sm80::run, sm80::workspace};
  }
  if constexpr (kBuiltForSm100) {
    rows.sm100 = {sm100::takes<1>, sm100::run<1>, sm100::workspace};
    rows.sm100_pair = {sm100::takes<2>, sm100::run<2>, sm100::workspace};
  }
  return rows;
}

constexpr auto kTable = nvfp4_table("nvfp4_geglu", kContracts, built_rows());

bool is_empty(const Params& params) { return params.rows == 0; }

constexpr EntryPoints<isobit_nvfp4_geglu_args, Params> kEntry = {kTable, check, is_empty, kNvfp4WorkspaceAlignment};

}  // namespace

const KernelInfo* kernel_at(int index) {
  return index < static_cast<int>(kTable.size()) ? &kTable[static_cast<size_t>(index)].info : nullptr;
}

}  // namespace isobit::nvfp4_geglu

using namespace isobit::nvfp4_geglu;

extern "C" {

const char* isobit_nvfp4_geglu_contract(void) { return kContract; }

isobit_status isobit_nvfp4_geglu_workspace(const isobit_nvfp4_geglu_args* args, size_t* minimum, size_t* recommended) {
  return kEntry.workspace(args, minimum, recommended);
}

isobit_status isobit_nvfp4_geglu_supported(const isobit_nvfp4_geglu_args* args, char* why, size_t n) {
  return kEntry.supported(args, why, n);
}

isobit_status isobit_nvfp4_geglu(const isobit_nvfp4_geglu_args* args, void* stream) { return kEntry.run(args, stream); }

}  // extern "C"
