#include "ops/nvfp4_linear/dispatch.h"

#include "core/entry_points.h"
#include "nvfp4/table.h"
#include "ops/nvfp4_linear/contract.h"
#include "ops/nvfp4_linear/cpu/kernel.h"
#include "ops/nvfp4_linear/sm100/launch.h"
#include "ops/nvfp4_linear/sm80/launch.h"
#include "ops/nvfp4_linear/sm90/launch.h"

namespace isobit::nvfp4_linear {
namespace {

constexpr Nvfp4Contracts kContracts = {kContract, "nvfp4_linear/sm80-unmeasured/0", "nvfp4_linear/sm100-unmeasured/0"};

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

constexpr auto kTable = nvfp4_table("nvfp4_linear", kContracts, built_rows());

bool is_empty(const Params& params) { return params.rows == 0 || params.columns == 0; }

constexpr EntryPoints<isobit_nvfp4_linear_args, Params> kEntry = {kTable, check, is_empty, kNvfp4WorkspaceAlignment};

}  // namespace

const KernelInfo* kernel_at(int index) {
  return index < static_cast<int>(kTable.size()) ? &kTable[static_cast<size_t>(index)].info : nullptr;
}

}  // namespace isobit::nvfp4_linear

using namespace isobit::nvfp4_linear;

extern "C" {

const char* isobit_nvfp4_linear_contract(void) { return kContract; }

isobit_status isobit_nvfp4_linear_workspace(const isobit_nvfp4_linear_args* args, size_t* minimum,
                                            size_t* recommended) {
  return kEntry.workspace(args, minimum, recommended);
}

isobit_status isobit_nvfp4_linear_supported(const isobit_nvfp4_linear_args* args, char* why, size_t n) {
  return kEntry.supported(args, why, n);
}

isobit_status isobit_nvfp4_linear(const isobit_nvfp4_linear_args* args, void* stream) {
  return kEntry.run(args, stream);
}

}  // extern "C"
