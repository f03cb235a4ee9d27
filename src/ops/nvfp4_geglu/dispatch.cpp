#include "ops/nvfp4_geglu/dispatch.h"

#include <iterator>

#include "core/build_config.h"
#include "core/capability.h"
#include "core/entry_points.h"
#include "ops/nvfp4_geglu/contract.h"
#include "ops/nvfp4_geglu/cpu/kernel.h"
#include "ops/nvfp4_geglu/sm100/launch.h"
#include "ops/nvfp4_geglu/sm80/launch.h"
#include "ops/nvfp4_geglu/sm90/launch.h"

namespace isobit::nvfp4_geglu {
namespace {

constexpr const char* kOp = "nvfp4_geglu";

// A name may have two rows. That of the mma.sync kernel: on SM90 its bits are those of the measured rule. None of the
// SM100 rows has run on silicon: what is chosen where stands on what was published of such schedules, not on a timing.
constexpr Kernel<Params> kTable[] = {
    {.info = {kOp, "sm90", "90a", kContract, ISOBIT_CUDA, 90, 90, kBuiltWithCuda},
     .takes = sm90::takes,
     .run = sm90::run,
     .workspace = sm90::workspace},
    // The default of SM110 alone (Thor): tiles of 128 x 256 x 256 in clusters of 1 x 2 x 1, the schedule that published
    // kernels for it have. A pair copies x once.
    {.info = {kOp, "sm100-pair", "110a, 110f", kScaledUnmeasured, ISOBIT_CUDA, 110, 110, kBuiltForSm100},
     .takes = sm100::takes<2>,
     .run = sm100::run<2>,
     .workspace = sm100::workspace},
    // The default of SM100 and SM103, of which nothing is published that says a pair wins: clusters of 1 x 1 x 1. An
    // option, by name, on SM110: there published tests found a pair faster alone and slower inside a whole model.
    {.info = {kOp, "sm100", "100f, 103a, 110a, 110f", kScaledUnmeasured, ISOBIT_CUDA, 100, 110, kBuiltForSm100},
     .takes = sm100::takes<1>,
     .run = sm100::run<1>,
     .workspace = sm100::workspace},
    // An option, by name: the same bits, for a comparison on the day.
    {.info = {kOp, "sm100-pair", "100f, 103a", kScaledUnmeasured, ISOBIT_CUDA, 100, 103, kBuiltForSm100},
     .takes = sm100::takes<2>,
     .run = sm100::run<2>,
     .workspace = sm100::workspace},
    {.info = {kOp, "sm80", "90", kContract, ISOBIT_CUDA, 90, 90, kBuiltWithCuda},
     .takes = sm80::takes,
     .run = sm80::run,
     .workspace = sm80::workspace},
    {.info = {kOp, "sm80", "80, 86, 89, 100, 103, 110, 120, 121", kUnmeasured, ISOBIT_CUDA, 80, kLatestCapability,
              kBuiltWithCuda},
     .takes = sm80::takes,
     .run = sm80::run,
     .workspace = sm80::workspace},
    {.info = {kOp, "cpu", "x86-64-v3, x86-64-v4, aarch64", kContract, ISOBIT_CPU, 0, 0, true},
     .takes = cpu::takes,
     .run = cpu::run,
     .workspace = cpu::workspace},
};

bool is_empty(const Params& params) { return params.rows == 0; }

constexpr EntryPoints<isobit_nvfp4_geglu_args, Params> kEntry = {kTable, check, is_empty, kWorkspaceAlignment};

}  // namespace

const KernelInfo* kernel_at(int index) {
  return index < static_cast<int>(std::size(kTable)) ? &kTable[index].info : nullptr;
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
