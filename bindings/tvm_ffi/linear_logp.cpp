// isobit/linear_logp.h for TVM-FFI. A tensor that is not wanted is None. workspace: bytes, or None for memory out of
// the caller's framework.
#include <isobit/linear_logp.h>

#include "arguments.h"

namespace isobit::tvm_ffi {
namespace {

// Inputs and options, which all calls of the operator share.
isobit_linear_logp_args inputs(const Tensor& hidden, const Tensor& weight, const Tensor& target,
                               const MaybeTensor& bias, const MaybeTensor& temperature, double temperature_value,
                               double softcap, bool use_ignore_index, int64_t ignore_index, int64_t vocab_size) {
  isobit_linear_logp_args args = ISOBIT_LINEAR_LOGP_ARGS_INIT;
  args.hidden = view("hidden", hidden);
  args.weight = view("weight", weight);
  args.bias = view("bias", bias);
  args.target = view("target", target);
  args.temperature = view("temperature", temperature);
  args.temperature_value = static_cast<float>(temperature_value);
  args.softcap = static_cast<float>(softcap);
  args.use_ignore_index = use_ignore_index;
  args.ignore_index = ignore_index;
  args.vocab_size = vocab_size;
  return args;
}

void add_outputs(isobit_linear_logp_args* args, const MaybeTensor& logp, const MaybeTensor& lse,
                 const MaybeTensor& entropy) {
  args->logp = view("logp", logp);
  args->lse = view("lse", lse);
  args->entropy = view("entropy", entropy);
}

void linear_logp(Tensor hidden, Tensor weight, Tensor target, MaybeTensor bias, MaybeTensor temperature,
                 double temperature_value, double softcap, bool use_ignore_index, int64_t ignore_index,
                 int64_t vocab_size, MaybeTensor logp, MaybeTensor lse, MaybeTensor entropy, MaybeTensor rank,
                 MaybeTensor target_logit, MaybeTensor top_id, MaybeTensor top_logp, MaybeTensor workspace) {
  isobit_linear_logp_args args = inputs(hidden, weight, target, bias, temperature, temperature_value, softcap,
                                        use_ignore_index, ignore_index, vocab_size);
  add_outputs(&args, logp, lse, entropy);
  args.rank = view("rank", rank);
  args.target_logit = view("target_logit", target_logit);
  args.top_id = view("top_id", top_id);
  args.top_logp = view("top_logp", top_logp);
  size_t bytes = 0;
  if (!workspace.has_value()) check(isobit_linear_logp_workspace(&args, nullptr, &bytes));
  const Workspace memory(workspace, bytes, hidden.device());
  args.workspace = memory.data();
  args.workspace_bytes = memory.bytes();
  check(isobit_linear_logp(&args, stream_of(hidden)));
}

using Run = isobit_status (*)(const isobit_linear_logp_backward_args*, void*);

// Either pass of training, its outputs filled in. Both take 1 - p as it is in fp32, which every kernel can.
void run(Run function, isobit_linear_logp_backward_args* args, const MaybeTensor& saved, const MaybeTensor& workspace,
         const Tensor& hidden) {
  args->subtract_p = 1;
  args->saved = view("saved", saved).data;
  size_t bytes = 0;
  if (args->saved != nullptr) {
    check(isobit_linear_logp_saved_bytes(args, &bytes));
    check_bytes("saved", *saved, hidden.device(), bytes);
  }
  if (!workspace.has_value()) check(isobit_linear_logp_backward_workspace(args, nullptr, &bytes));
  const Workspace memory(workspace, bytes, hidden.device());
  args->forward.workspace = memory.data();
  args->forward.workspace_bytes = memory.bytes();
  check(function(args, stream_of(hidden)));
}

void linear_logp_save(Tensor hidden, Tensor weight, Tensor target, MaybeTensor bias, MaybeTensor temperature,
                      double temperature_value, double softcap, bool use_ignore_index, int64_t ignore_index,
                      int64_t vocab_size, MaybeTensor logp, MaybeTensor lse, MaybeTensor entropy, Tensor saved,
                      MaybeTensor workspace) {
  isobit_linear_logp_backward_args args = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
  args.forward = inputs(hidden, weight, target, bias, temperature, temperature_value, softcap, use_ignore_index,
                        ignore_index, vocab_size);
  add_outputs(&args.forward, logp, lse, entropy);
  run(isobit_linear_logp_save, &args, saved, workspace, hidden);
}

void linear_logp_backward(Tensor hidden, Tensor weight, Tensor target, MaybeTensor bias, MaybeTensor temperature,
                          MaybeTensor d_logp, MaybeTensor d_lse, MaybeTensor d_entropy, MaybeTensor saved,
                          double temperature_value, double softcap, bool use_ignore_index, int64_t ignore_index,
                          int64_t vocab_size, MaybeTensor d_hidden, MaybeTensor d_weight, MaybeTensor d_bias,
                          MaybeTensor workspace) {
  isobit_linear_logp_backward_args args = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
  args.forward = inputs(hidden, weight, target, bias, temperature, temperature_value, softcap, use_ignore_index,
                        ignore_index, vocab_size);
  args.d_logp = view("d_logp", d_logp);
  args.d_lse = view("d_lse", d_lse);
  args.d_entropy = view("d_entropy", d_entropy);
  args.d_hidden = view("d_hidden", d_hidden);
  args.d_weight = view("d_weight", d_weight);
  args.d_bias = view("d_bias", d_bias);
  run(isobit_linear_logp_backward, &args, saved, workspace, hidden);
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(linear_logp, linear_logp)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(linear_logp_save, linear_logp_save)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(linear_logp_backward, linear_logp_backward)

}  // namespace isobit::tvm_ffi
