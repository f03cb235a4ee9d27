#include "ops/nvfp4_quantize/dispatch.h"

#include <cstdio>
#include <iterator>

#include "core/build_config.h"
#include "core/capability.h"
#include "ops/nvfp4_quantize/contract.h"
#include "ops/nvfp4_quantize/cpu/kernel.h"
#include "ops/nvfp4_quantize/cuda/launch.h"

namespace isobit::nvfp4_quantize {
namespace {

constexpr const char* kOp = "nvfp4_quantize";

WorkspaceBytes no_workspace(const Params&) { return {}; }

constexpr Kernel<Params> kTable[] = {
    {.info = {kOp, "cpu", "x86-64-v3, aarch64", kContract, ISOBIT_CPU, 0, 0, true},
     .takes = cpu::takes,
     .run = cpu::run,
     .workspace = no_workspace},
    {.info = {kOp, "cuda", "80, 86, 89, 90, 100, 103, 110, 120, 121", kContract, ISOBIT_CUDA, 80, kLatestCapability,
              kBuiltWithCuda},
     .takes = cuda::takes,
     .run = cuda::run,
     .workspace = no_workspace},
};

// Checks the arguments and calls `then` with the row of the table that takes the call, or says why there is none.
template <class Then>
Status with_kernel(const isobit_nvfp4_quantize_args* args, Params* params, const Then& then) {
  if (Status s = check(args, params); !s.ok()) return s;
  const Kernel<Params>* kernel = nullptr;
  const Status status = select_kernel<Params>(kTable, params->kernel, *params, params->device, &kernel);
  return kernel == nullptr ? status : then(*kernel);
}

}  // namespace

const KernelInfo* kernel_at(int index) {
  return index < static_cast<int>(std::size(kTable)) ? &kTable[index].info : nullptr;
}

}  // namespace isobit::nvfp4_quantize

using namespace isobit::nvfp4_quantize;

extern "C" {

const char* isobit_nvfp4_quantize_contract(void) { return kContract; }

isobit_status isobit_nvfp4_quantize_supported(const isobit_nvfp4_quantize_args* args, char* why, size_t n) {
  Params params;
  const isobit::Status status =
      with_kernel(args, &params, [](const isobit::Kernel<Params>&) { return isobit::Status(); });
  if (why != nullptr && n > 0) std::snprintf(why, n, "%s", status.ok() ? "" : isobit::last_error());
  return status.code();
}

isobit_status isobit_nvfp4_quantize(const isobit_nvfp4_quantize_args* args, void* stream) {
  Params params;
  const auto launch = [&](const isobit::Kernel<Params>& kernel) {
    return params.rows == 0 ? isobit::Status() : kernel.run(params, stream);
  };
  return with_kernel(args, &params, launch).code();
}

}  // extern "C"
