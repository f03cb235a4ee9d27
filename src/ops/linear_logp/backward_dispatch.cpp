#include <cstdio>

#include "core/build_config.h"
#include "core/capability.h"
#include "ops/linear_logp/backward_contract.h"
#include "ops/linear_logp/cpu/backward.h"
#include "ops/linear_logp/cuda/kernels.h"
#include "ops/linear_logp/dispatch.h"
#include "ops/linear_logp/saved.h"

namespace isobit::linear_logp {
namespace {

constexpr const char* kOp = "linear_logp_backward";

// Elsewhere than on SM90 nobody has measured the tensor-core rule: dispatch.cpp.
constexpr const char* kUnmeasured = "linear_logp_backward/sm80-unmeasured/0";

constexpr Kernel<BackwardParams> kTable[] = {
    {.info = {kOp, "sm90", "90a", kBackwardContract, ISOBIT_CUDA, 90, 90, kBuiltWithCuda},
     .takes = cuda::takes_backward_sm90,
     .run = cuda::run_backward_sm90,
     .workspace = cuda::backward_workspace_sm90},
    {.info = {kOp, "sm80", "90", kBackwardContract, ISOBIT_CUDA, 90, 90, kBuiltWithCuda},
     .takes = cuda::takes_backward_sm80,
     .run = cuda::run_backward_sm80,
     .workspace = cuda::backward_workspace_sm80},
    {.info = {kOp, "sm80", "80, 86, 89, 100, 103, 110, 120, 121", kUnmeasured, ISOBIT_CUDA, 80, kLatestCapability,
              kBuiltWithCuda},
     .takes = cuda::takes_backward_sm80,
     .run = cuda::run_backward_sm80,
     .workspace = cuda::backward_workspace_sm80},
    {.info = {kOp, "cpu", "x86-64-v3, x86-64-v4, aarch64", kBackwardContract, ISOBIT_CPU, 0, 0, true},
     .takes = cpu::takes_backward,
     .run = cpu::run_backward,
     .workspace = cpu::backward_workspace},
};

// Calls `then` with the row of the table that takes the call, or says why there is none.
template <class Then>
Status with_kernel(const BackwardParams& params, const Then& then) {
  const Kernel<BackwardParams>* kernel = nullptr;
  const Status status =
      select_kernel<BackwardParams>(kTable, params.forward.kernel, params, params.forward.device, &kernel);
  return kernel == nullptr ? status : then(*kernel);
}

Status check_workspace(const BackwardParams& params, const Kernel<BackwardParams>& kernel) {
  const bool merges = params.purpose == BackwardPurpose::kMerge || params.purpose == BackwardPurpose::kSaveMerge;
  if (merges || params.forward.rows == 0) return Status();
  return isobit::check_workspace(kernel.workspace(params), params.forward.workspace, params.forward.workspace_bytes,
                                 kWorkspaceAlignment);
}

isobit_status run(const isobit_linear_logp_backward_args* args, BackwardPurpose purpose, void* stream,
                  void* part = nullptr, MergeInput* merge = nullptr) {
  BackwardParams params;
  if (const Status s = check_backward(args, purpose, &params, part, merge); !s.ok()) return s.code();
  return with_kernel(params,
                     [&](const Kernel<BackwardParams>& kernel) {
                       const Status status = check_workspace(params, kernel);
                       return status.ok() ? kernel.run(params, stream) : status;
                     })
      .code();
}

Status size_of(const isobit_linear_logp_backward_args* args, BackwardPurpose purpose, const size_t* bytes,
               BackwardParams* params) {
  if (bytes == nullptr) return refuse("bytes", "a pointer", "null");
  return check_backward(args, purpose, params);
}

}  // namespace

const KernelInfo* backward_kernel_at(int index) {
  return index < static_cast<int>(std::size(kTable)) ? &kTable[index].info : nullptr;
}

}  // namespace isobit::linear_logp

using namespace isobit::linear_logp;

extern "C" {

const char* isobit_linear_logp_backward_contract(void) { return kBackwardContract; }

isobit_status isobit_linear_logp_backward_workspace(const isobit_linear_logp_backward_args* args, size_t* minimum,
                                                    size_t* recommended) {
  BackwardParams params;
  if (const isobit::Status s = check_backward(args, BackwardPurpose::kQuery, &params); !s.ok()) return s.code();
  const auto answer = [&](const isobit::Kernel<BackwardParams>& kernel) {
    const isobit::WorkspaceBytes bytes = kernel.workspace(params);
    if (minimum != nullptr) *minimum = bytes.minimum;
    if (recommended != nullptr) *recommended = bytes.recommended;
    return isobit::Status();
  };
  return with_kernel(params, answer).code();
}

isobit_status isobit_linear_logp_backward_supported(const isobit_linear_logp_backward_args* args, char* why, size_t n) {
  BackwardParams params;
  isobit::Status status = check_backward(args, BackwardPurpose::kWhole, &params);
  if (status.ok()) {
    status = with_kernel(params,
                         [&](const isobit::Kernel<BackwardParams>& kernel) { return check_workspace(params, kernel); });
  }
  if (why != nullptr && n > 0) std::snprintf(why, n, "%s", status.ok() ? "" : isobit::last_error());
  return status.code();
}

isobit_status isobit_linear_logp_backward(const isobit_linear_logp_backward_args* args, void* stream) {
  return run(args, BackwardPurpose::kWhole, stream);
}

isobit_status isobit_linear_logp_saved_bytes(const isobit_linear_logp_backward_args* args, size_t* bytes) {
  BackwardParams params{};
  if (const isobit::Status s = size_of(args, BackwardPurpose::kQuery, bytes, &params); !s.ok()) return s.code();
  *bytes = static_cast<size_t>(saved_bytes(params.forward.rows));
  return ISOBIT_OK;
}

isobit_status isobit_linear_logp_save(const isobit_linear_logp_backward_args* args, void* stream) {
  return run(args, BackwardPurpose::kSave, stream);
}

isobit_status isobit_linear_logp_save_merge(const isobit_linear_logp_backward_args* args,
                                            const isobit_linear_logp_state* states, int32_t count, void* stream) {
  MergeInput input{states, count, {}};
  return run(args, BackwardPurpose::kSaveMerge, stream, nullptr, &input);
}

isobit_status isobit_linear_logp_part_bytes(const isobit_linear_logp_backward_args* args, size_t* bytes) {
  BackwardParams params{};
  if (const isobit::Status s = size_of(args, BackwardPurpose::kShardQuery, bytes, &params); !s.ok()) return s.code();
  *bytes = static_cast<size_t>(part_bytes(params, params.forward.shard_ids()));
  return ISOBIT_OK;
}

isobit_status isobit_linear_logp_backward_shard(const isobit_linear_logp_backward_args* args, void* part,
                                                void* stream) {
  return run(args, BackwardPurpose::kShard, stream, part);
}

isobit_status isobit_linear_logp_backward_merge(const isobit_linear_logp_backward_args* args,
                                                const isobit_linear_logp_state* parts, int32_t count, void* stream) {
  MergeInput input{parts, count, {}};
  return run(args, BackwardPurpose::kMerge, stream, nullptr, &input);
}

}  // extern "C"
