#include "ops/linear_logp/dispatch.h"

#include "core/build_config.h"
#include "core/capability.h"
#include "ops/linear_logp/contract.h"
#include "ops/linear_logp/cpu/kernel.h"
#include "ops/linear_logp/cuda/kernels.h"
#include "ops/linear_logp/state.h"
#include "ops/linear_logp/validate.h"

namespace isobit::linear_logp {
namespace {

constexpr const char* kOp = "linear_logp";

// Nobody has measured the tensor-core rule of these architectures, so their bits carry no promise across devices.
constexpr const char* kUnmeasured = "linear_logp/sm80-unmeasured/0";

// The mma.sync kernel has two rows of one name: on SM90 its bits are those of the measured rule.
constexpr Kernel<Params> kTable[] = {
    {.info = {kOp, "sm90", "90a", kContract, ISOBIT_CUDA, 90, 90, kBuiltWithCuda},
     .takes = cuda::takes_sm90,
     .run = cuda::run_sm90,
     .workspace = cuda::workspace},
    {.info = {kOp, "sm80", "90", kContract, ISOBIT_CUDA, 90, 90, kBuiltWithCuda},
     .takes = cuda::takes_sm80,
     .run = cuda::run_sm80,
     .workspace = cuda::workspace},
    {.info = {kOp, "sm80", "80, 86, 89, 100, 103, 110, 120, 121", kUnmeasured, ISOBIT_CUDA, 80, kLatestCapability,
              kBuiltWithCuda},
     .takes = cuda::takes_sm80,
     .run = cuda::run_sm80,
     .workspace = cuda::workspace},
    {.info = {kOp, "cpu", "x86-64-v3, x86-64-v4, aarch64", kContract, ISOBIT_CPU, 0, 0, true},
     .takes = cpu::takes,
     .run = cpu::run,
     .workspace = cpu::workspace},
};

// Calls `then` with the row of the table that takes the call, or says why there is none.
template <class Then>
Status with_kernel(const Params& params, const Then& then) {
  const Kernel<Params>* kernel = nullptr;
  const Status status = select_kernel<Params>(kTable, params.kernel, params, params.device, &kernel);
  return kernel == nullptr ? status : then(*kernel);
}

Status check_workspace(const Params& params, const Kernel<Params>& kernel) {
  const WorkspaceBytes needed = params.rows == 0 ? WorkspaceBytes{} : kernel.workspace(params);
  return isobit::check_workspace(needed, params.workspace, params.workspace_bytes, kWorkspaceAlignment);
}

isobit_status launch(const Params& params, void* stream) {
  return with_kernel(params,
                     [&](const Kernel<Params>& kernel) {
                       const Status status = check_workspace(params, kernel);
                       return status.ok() && params.rows > 0 ? kernel.run(params, stream) : status;
                     })
      .code();
}

// The call that arguments without a state can mean.
Purpose apparent_purpose(const isobit_linear_logp_args* args) {
  if (args == nullptr || args->struct_size != sizeof *args) return Purpose::kWhole;  // which refuses it
  const bool whole = args->first_id == 0 && (args->vocab_size == 0 || args->weight.shape[0] >= args->vocab_size);
  return whole ? Purpose::kWhole : Purpose::kQuery;
}

}  // namespace

const KernelInfo* kernel_at(int index) {
  return index < static_cast<int>(std::size(kTable)) ? &kTable[index].info : nullptr;
}

}  // namespace isobit::linear_logp

using namespace isobit::linear_logp;

extern "C" {

const char* isobit_linear_logp_contract(void) { return kContract; }

isobit_status isobit_linear_logp_workspace(const isobit_linear_logp_args* args, size_t* minimum, size_t* recommended) {
  Params params;
  if (const isobit::Status s = check(args, Purpose::kQuery, &params); !s.ok()) return s.code();
  const auto answer = [&](const isobit::Kernel<Params>& kernel) {
    const isobit::WorkspaceBytes bytes = kernel.workspace(params);
    if (minimum != nullptr) *minimum = bytes.minimum;
    if (recommended != nullptr) *recommended = bytes.recommended;
    return isobit::Status();
  };
  return with_kernel(params, answer).code();
}

isobit_status isobit_linear_logp_supported(const isobit_linear_logp_args* args, char* why, size_t n) {
  Params params;
  const Purpose purpose = apparent_purpose(args);
  isobit::Status status = check(args, purpose, &params);
  if (status.ok()) {
    status = with_kernel(params, [&](const isobit::Kernel<Params>& kernel) {
      return purpose == Purpose::kQuery ? isobit::Status() : check_workspace(params, kernel);
    });
  }
  if (why != nullptr && n > 0) std::snprintf(why, n, "%s", status.ok() ? "" : isobit::last_error());
  return status.code();
}

isobit_status isobit_linear_logp(const isobit_linear_logp_args* args, void* stream) {
  Params params;
  if (const isobit::Status s = check(args, Purpose::kWhole, &params); !s.ok()) return s.code();
  return launch(params, stream);
}

isobit_status isobit_linear_logp_validate(const isobit_linear_logp_args* args, int64_t* first_bad_row, void* stream) {
  Params params;
  if (first_bad_row == nullptr) return isobit::refuse("first_bad_row", "a pointer", "null").code();
  if (const isobit::Status s = check(args, Purpose::kQuery, &params); !s.ok()) return s.code();
  return find_bad_row(*args, params, first_bad_row, stream).code();
}

isobit_status isobit_linear_logp_state_bytes(const isobit_linear_logp_args* args, size_t* bytes) {
  Params params;
  if (bytes == nullptr) return isobit::refuse("bytes", "a pointer", "null").code();
  if (const isobit::Status s = check(args, Purpose::kShardQuery, &params); !s.ok()) return s.code();
  *bytes = static_cast<size_t>(state_layout(params.shard_ids(), params.vocab, params.rows, params.targets,
                                            params.wants_entropy, params.wants_rank)
                                   .bytes);
  return ISOBIT_OK;
}

isobit_status isobit_linear_logp_shard(const isobit_linear_logp_args* args, void* state, void* stream) {
  Params params;
  if (const isobit::Status s = check(args, Purpose::kShard, &params, state); !s.ok()) return s.code();
  return launch(params, stream);
}

isobit_status isobit_linear_logp_merge(const isobit_linear_logp_args* args, const isobit_linear_logp_state* states,
                                       int32_t count, void* stream) {
  Params params;
  MergeInput merge{states, count, {}};
  if (const isobit::Status s = check(args, Purpose::kMerge, &params, nullptr, &merge); !s.ok()) return s.code();
  return launch(params, stream);
}

}  // extern "C"
