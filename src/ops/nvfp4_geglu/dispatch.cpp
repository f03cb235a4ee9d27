#include "ops/nvfp4_geglu/dispatch.h"

#include <cstdio>
#include <iterator>

#include "core/build_config.h"
#include "ops/nvfp4_geglu/contract.h"
#include "ops/nvfp4_geglu/cpu/kernel.h"
#include "ops/nvfp4_geglu/sm80/launch.h"

namespace isobit::nvfp4_geglu {
namespace {

constexpr const char* kOp = "nvfp4_geglu";

// The mma.sync kernel has two rows of one name: on SM90 its bits are those of the measured rule.
constexpr Kernel<Params> kTable[] = {
    {.info = {kOp, "sm80", "90", kContract, ISOBIT_CUDA, 90, 90, kBuiltWithCuda},
     .takes = sm80::takes,
     .run = sm80::run,
     .workspace = sm80::workspace},
    {.info = {kOp, "sm80", "80, 86, 89, 100, 103, 110, 120, 121", kUnmeasured, ISOBIT_CUDA, 80, 129, kBuiltWithCuda},
     .takes = sm80::takes,
     .run = sm80::run,
     .workspace = sm80::workspace},
    {.info = {kOp, "cpu", "x86-64-v3, x86-64-v4, aarch64", kContract, ISOBIT_CPU, 0, 0, true},
     .takes = cpu::takes,
     .run = cpu::run,
     .workspace = cpu::workspace},
};

bool is_empty(const Params& params) { return params.rows == 0; }

// Checks the arguments and calls `then` with the row of the table that takes the call, or says why there is none.
template <class Then>
Status with_kernel(const isobit_nvfp4_geglu_args* args, Params* params, const Then& then) {
  if (Status s = check(args, params); !s.ok()) return s;
  const Kernel<Params>* kernel = nullptr;
  const Status status = select_kernel<Params>(kTable, params->kernel, *params, params->device, &kernel);
  return kernel == nullptr ? status : then(*kernel);
}

Status check_memory(const Params& params, const Kernel<Params>& kernel) {
  return check_workspace(is_empty(params) ? WorkspaceBytes{} : kernel.workspace(params), params.workspace,
                         params.workspace_bytes, kWorkspaceAlignment);
}

}  // namespace

const KernelInfo* kernel_at(int index) {
  return index < static_cast<int>(std::size(kTable)) ? &kTable[index].info : nullptr;
}

}  // namespace isobit::nvfp4_geglu

using namespace isobit::nvfp4_geglu;

extern "C" {

const char* isobit_nvfp4_geglu_contract(void) { return kContract; }

isobit_status isobit_nvfp4_geglu_workspace(const isobit_nvfp4_geglu_args* args, size_t* minimum, size_t* recommended) {
  Params params;
  const auto answer = [&](const isobit::Kernel<Params>& kernel) {
    const isobit::WorkspaceBytes bytes = kernel.workspace(params);
    if (minimum != nullptr) *minimum = bytes.minimum;
    if (recommended != nullptr) *recommended = bytes.recommended;
    return isobit::Status();
  };
  return with_kernel(args, &params, answer).code();
}

isobit_status isobit_nvfp4_geglu_supported(const isobit_nvfp4_geglu_args* args, char* why, size_t n) {
  Params params;
  const isobit::Status status =
      with_kernel(args, &params, [&](const isobit::Kernel<Params>& kernel) { return check_memory(params, kernel); });
  if (why != nullptr && n > 0) std::snprintf(why, n, "%s", status.ok() ? "" : isobit::last_error());
  return status.code();
}

isobit_status isobit_nvfp4_geglu(const isobit_nvfp4_geglu_args* args, void* stream) {
  Params params;
  const auto launch = [&](const isobit::Kernel<Params>& kernel) {
    const isobit::Status status = check_memory(params, kernel);
    return status.ok() && !is_empty(params) ? kernel.run(params, stream) : status;
  };
  return with_kernel(args, &params, launch).code();
}

}  // extern "C"
