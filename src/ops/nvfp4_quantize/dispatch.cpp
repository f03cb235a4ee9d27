#include "ops/nvfp4_quantize/dispatch.h"

#include <cstdio>
#include <iterator>

#include "core/build_config.h"
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
    {.info = {kOp, "cuda", "80, 86, 89, 90, 100, 103, 110, 120, 121", kContract, ISOBIT_CUDA, 80, 129, kBuiltWithCuda},
     .takes = cuda::takes,
     .run = cuda::run,
     .workspace = no_workspace},
};

Status prepare(const isobit_nvfp4_quantize_args* args, Params* params, const Kernel<Params>** kernel) {
  if (Status s = check(args, params); !s.ok()) return s;
  return select_kernel<Params>(kTable, params->kernel, *params, params->device, kernel);
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
  const isobit::Kernel<Params>* kernel = nullptr;
  const isobit::Status status = prepare(args, &params, &kernel);
  if (why != nullptr && n > 0) std::snprintf(why, n, "%s", status.ok() ? "" : isobit::last_error());
  return status.code();
}

isobit_status isobit_nvfp4_quantize(const isobit_nvfp4_quantize_args* args, void* stream) {
  Params params;
  const isobit::Kernel<Params>* kernel = nullptr;
  if (const isobit::Status s = prepare(args, &params, &kernel); !s.ok()) return s.code();
  return params.rows == 0 ? ISOBIT_OK : kernel->run(params, stream).code();
}

}  // extern "C"
