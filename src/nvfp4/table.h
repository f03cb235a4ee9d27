// The table of kernels of an NVFP4 product: every such operator has the same rows.
#pragma once

#include <array>

#include "core/build_config.h"
#include "core/capability.h"
#include "core/kernel_table.h"

namespace isobit {

// The functions of a row; null where the build has none. Dispatch refuses such a row before they are reached.
template <class Params>
struct Nvfp4Row {
  Status (*takes)(const Params& params, const DeviceProperties& device) = nullptr;
  Status (*run)(const Params& params, void* stream) = nullptr;
  WorkspaceBytes (*workspace)(const Params& params) = nullptr;
};

template <class Params>
struct Nvfp4Rows {
  Nvfp4Row<Params> sm90, sm100, sm100_pair, sm80, cpu;
};

// Contract ids. Nobody has measured the tensor-core rule of other architectures than SM90: no promise across devices.
// What the block-scaled instructions make of a sum is not measured either, and it is another rule: one instruction adds
// four blocks.
struct Nvfp4Contracts {
  const char* measured;
  const char* unmeasured;
  const char* scaled_unmeasured;
};

// A name may have two rows. That of the mma.sync kernel: on SM90 its bits are those of the measured rule. None of the
// SM100 rows has run on silicon: what is chosen where stands on what was published of such schedules, not on a timing.
template <class Params>
constexpr std::array<Kernel<Params>, 7> nvfp4_table(const char* op, const Nvfp4Contracts& contracts,
                                                    const Nvfp4Rows<Params>& rows) {
  const auto kernel = [](const KernelInfo& info, const Nvfp4Row<Params>& row) {
    return Kernel<Params>{.info = info, .takes = row.takes, .run = row.run, .workspace = row.workspace};
  };
  const char* const measured = contracts.measured;
  const char* const unmeasured = contracts.unmeasured;
  const char* const scaled = contracts.scaled_unmeasured;
  constexpr bool kCuda = kBuiltWithCuda;
  constexpr bool kScaled = kBuiltForSm100;
  return {
      kernel({op, "sm90", "90a", measured, ISOBIT_CUDA, 90, 90, kCuda}, rows.sm90),
      // The default of SM110 alone (Thor): tiles of 128 x 256 x 256 in clusters of 1 x 2 x 1, the schedule that
      // published kernels for it have. A pair copies x once.
      kernel({op, "sm100-pair", "110a, 110f", scaled, ISOBIT_CUDA, 110, 110, kScaled}, rows.sm100_pair),
      // The default of SM100 and SM103, of which nothing is published that says a pair wins: clusters of 1 x 1 x 1. An
      // option, by name, on SM110: there published tests found a pair faster alone and slower inside a whole model.
      kernel({op, "sm100", "100f, 103a, 110a, 110f", scaled, ISOBIT_CUDA, 100, 110, kScaled}, rows.sm100),
      // An option, by name: the same bits, for a comparison on the day.
      kernel({op, "sm100-pair", "100f, 103a", scaled, ISOBIT_CUDA, 100, 103, kScaled}, rows.sm100_pair),
      kernel({op, "sm80", "90", measured, ISOBIT_CUDA, 90, 90, kCuda}, rows.sm80),
      kernel({op, "sm80", "80, 86, 89, 100, 103, 110, 120, 121", unmeasured, ISOBIT_CUDA, 80, kLatestCapability, kCuda},
             rows.sm80),
      kernel({op, "cpu", "x86-64-v3, x86-64-v4, aarch64", measured, ISOBIT_CPU, 0, 0, true}, rows.cpu),
  };
}

}  // namespace isobit
