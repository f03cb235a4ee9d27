#include "ops/linear_logp/contract.h"

#include <algorithm>
#include <cmath>

#include "core/threads.h"
#include "ops/linear_logp/contract_memory.h"

namespace isobit::linear_logp {
namespace {

Status check_header(const isobit_linear_logp_args* args) {
  if (args == nullptr) return refuse("args", "a pointer", "null");
  if (args->struct_size != sizeof(isobit_linear_logp_args)) {
    return refuse("struct_size", "sizeof(isobit_linear_logp_args)", "%u, this library has %zu", args->struct_size,
                  sizeof(isobit_linear_logp_args));
  }
  if (args->reserved != 0) return refuse("reserved", "0", "%d", args->reserved);
  if (Status s = check_threads(args->threads); !s.ok()) return s;
  if (args->use_ignore_index != 0 && args->use_ignore_index != 1) {
    return refuse("use_ignore_index", "0 or 1", "%d", args->use_ignore_index);
  }
  return Status();
}

// Fills a Params from arguments, one group of them per function, in the order of the checks.
class Checker {
 public:
  Checker(const isobit_linear_logp_args& args, Purpose purpose, Params* params)
      : args_(args), purpose_(purpose), p_(*params) {}

  Status inputs();
  Status outputs();

 private:
  Status check_operands();
  Status check_vocabulary();
  Status check_bias();
  Status check_target();
  Status check_scalars();
  template <class T>
  Status output(const char* name, const isobit_tensor& tensor, isobit_dtype dtype, int rank, int64_t columns,
                const char* letter, Output<T>* out);
  Status rows_extent(const char* name, const isobit_tensor& tensor) const {
    return check_extent(name, tensor, 0, p_.rows, "N");
  }

  // A tensor whose memory this call does not touch may lack it: anything non-null stands for it.
  isobit_tensor placed(const isobit_tensor& tensor, bool untouched) const {
    isobit_tensor view = tensor;
    if (untouched) view.data = const_cast<isobit_linear_logp_args*>(&args_);
    return view;
  }
  Status view(const char* name, const isobit_tensor& tensor, std::initializer_list<isobit_dtype> dtypes,
              std::initializer_list<int> ranks, bool untouched) const {
    const isobit_tensor seen = placed(tensor, untouched);
    if (Status s = check_view(name, seen, dtypes, ranks); !s.ok()) return s;
    return check_device(name, seen, p_.device);
  }
  bool query() const { return purpose_ == Purpose::kQuery || purpose_ == Purpose::kShardQuery; }
  bool shard() const {
    return purpose_ == Purpose::kShard || purpose_ == Purpose::kShardQuery || purpose_ == Purpose::kBackwardShard;
  }
  bool backward() const { return purpose_ == Purpose::kBackward || purpose_ == Purpose::kBackwardShard; }
  bool whole() const { return purpose_ == Purpose::kWhole || purpose_ == Purpose::kBackward; }
  bool merge() const { return purpose_ == Purpose::kMerge; }
  // In a shard call outputs only announce what the merge will want.
  bool outputs_untouched() const { return query() || shard(); }

  const isobit_linear_logp_args& args_;
  Purpose purpose_;
  Params& p_;
  int32_t output_count_ = 0;
};

Status Checker::check_operands() {
  const isobit_tensor& hidden = args_.hidden;
  const isobit_tensor& weight = args_.weight;
  p_.device = {hidden.device_type, hidden.device_id};
  if (Status s = view("hidden", hidden, {ISOBIT_BF16, ISOBIT_FP16}, {2}, query()); !s.ok()) return s;
  if (Status s = view("weight", weight, {ISOBIT_BF16, ISOBIT_FP16}, {2}, query()); !s.ok()) return s;
  if (weight.dtype != hidden.dtype) {
    return refuse("weight", "the dtype of hidden", "%s, hidden is %s", dtype_name(weight.dtype),
                  dtype_name(hidden.dtype));
  }
  p_.rows = hidden.shape[0];
  p_.width = hidden.shape[1];
  if (Status s = check_limit("hidden", "N", p_.rows, 0, kMaxRows); !s.ok()) return s;
  if (Status s = check_limit("hidden", "H", p_.width, 1, kMaxWidth); !s.ok()) return s;
  if (Status s = check_limit("weight", "Vw", weight.shape[0], 0, kMaxVocab); !s.ok()) return s;
  if (Status s = check_extent("weight", weight, 1, p_.width, "H"); !s.ok()) return s;
  if (Status s = check_unit_stride("hidden", hidden, 1); !s.ok()) return s;
  if (Status s = check_unit_stride("weight", weight, 1); !s.ok()) return s;
  if (weight.shape[0] > 1 && weight.stride[0] < p_.width) {
    return refuse("weight", "stride[0] >= H", "stride[0] = %lld, H = %lld", number(weight.stride[0]), number(p_.width));
  }
  p_.dtype = hidden.dtype;
  p_.hidden = hidden.data;
  p_.hidden_stride = hidden.stride[0];
  p_.weight = weight.data;
  p_.weight_stride = weight.stride[0];
  return Status();
}

// V, and which of the ids this call holds.
Status Checker::check_vocabulary() {
  const int64_t held = merge() ? 0 : args_.weight.shape[0];
  if (args_.vocab_size < 0) return refuse("vocab_size", "0 or more", "%lld", number(args_.vocab_size));
  if (Status s = check_limit("first_id", "first_id", args_.first_id, 0, kMaxVocab); !s.ok()) return s;
  if (args_.vocab_size == 0 && (shard() || merge())) {
    return refuse("vocab_size", "the size of the whole vocabulary in a shard or merge call", "0");
  }
  if (whole() && args_.first_id != 0) {
    return refuse("first_id", "0 in a call over the whole vocabulary", "%lld", number(args_.first_id));
  }
  p_.vocab = args_.vocab_size != 0 ? args_.vocab_size : args_.first_id + held;
  if (Status s = check_limit("vocab_size", "V", p_.vocab, 1, kMaxVocab); !s.ok()) return s;
  if (whole() && held < p_.vocab) {
    return refuse("weight", "a row for every id (Vw >= V) in a call over the whole vocabulary", "Vw = %lld, V = %lld",
                  number(held), number(p_.vocab));
  }
  p_.first_id = args_.first_id;
  p_.count = std::max<int64_t>(0, std::min(args_.first_id + held, p_.vocab) - args_.first_id);
  return Status();
}

Status Checker::check_bias() {
  const isobit_tensor& bias = args_.bias;
  if (!present(bias)) return Status();
  if (Status s = view("bias", bias, {ISOBIT_BF16, ISOBIT_FP16, ISOBIT_FP32}, {1}, query()); !s.ok()) return s;
  if (Status s = check_extent("bias", bias, 0, args_.weight.shape[0], "Vw"); !s.ok()) return s;
  p_.bias = bias.data;
  p_.bias_dtype = bias.dtype;
  p_.bias_stride = bias.stride[0];
  return Status();
}

Status Checker::check_target() {
  const isobit_tensor& target = args_.target;
  if (merge()) {
    p_.device = {target.device_type, target.device_id};
    p_.rows = std::max<int64_t>(target.shape[0], 0);
  }
  if (Status s = view("target", target, {ISOBIT_INT32, ISOBIT_INT64}, {1, 2}, query()); !s.ok()) return s;
  if (Status s = check_limit("target", "N", target.shape[0], 0, kMaxRows); !s.ok()) return s;
  if (Status s = rows_extent("target", target); !s.ok()) return s;
  p_.targets = target.rank == 2 ? target.shape[1] : 1;
  if (Status s = check_limit("target", "K", p_.targets, 1, kMaxTargets); !s.ok()) return s;
  p_.target = target.data;
  p_.target_is_int64 = target.dtype == ISOBIT_INT64;
  p_.target_row_stride = target.stride[0];
  p_.target_column_stride = target.rank == 2 ? target.stride[1] : 0;
  return Status();
}

Status Checker::check_scalars() {
  const isobit_tensor& temperature = args_.temperature;
  if (present(temperature)) {
    if (Status s = view("temperature", temperature, {ISOBIT_FP32}, {1, 2}, query()); !s.ok()) return s;
    if (Status s = rows_extent("temperature", temperature); !s.ok()) return s;
    if (temperature.rank == 2) {
      if (Status s = check_extent("temperature", temperature, 1, 1, "one per row"); !s.ok()) return s;
    }
    p_.temperature = static_cast<const float*>(temperature.data);
    p_.temperature_stride = temperature.stride[0];
  } else if (!(args_.temperature_value > 0.0f) || std::isinf(args_.temperature_value)) {
    return refuse("temperature_value", "a finite value above 0", "%g", static_cast<double>(args_.temperature_value));
  }
  p_.temperature_value = args_.temperature_value;
  if (!(args_.softcap >= 0.0f) || std::isinf(args_.softcap)) {
    return refuse("softcap", "0 (none) or a finite value above 0", "%g", static_cast<double>(args_.softcap));
  }
  p_.softcap = args_.softcap;
  return Status();
}

Status Checker::inputs() {
  p_.purpose = purpose_;
  p_.threads = args_.threads;
  p_.kernel = args_.kernel;
  p_.ignore_index = args_.ignore_index;
  p_.use_ignore_index = args_.use_ignore_index != 0;
  if (merge()) {
    if (Status s = check_vocabulary(); !s.ok()) return s;
    return check_target();
  }
  if (Status s = check_operands(); !s.ok()) return s;
  if (Status s = check_vocabulary(); !s.ok()) return s;
  if (Status s = check_bias(); !s.ok()) return s;
  if (Status s = check_target(); !s.ok()) return s;
  return check_scalars();
}

template <class T>
Status Checker::output(const char* name, const isobit_tensor& tensor, isobit_dtype dtype, int rank, int64_t columns,
                       const char* letter, Output<T>* out) {
  if (!present(tensor)) return Status();
  ++output_count_;
  if (Status s = view(name, tensor, {dtype}, {rank}, outputs_untouched()); !s.ok()) return s;
  if (Status s = rows_extent(name, tensor); !s.ok()) return s;
  if (rank == 2) {
    if (Status s = check_extent(name, tensor, 1, columns, letter); !s.ok()) return s;
  }
  if (Status s = check_writable(name, tensor); !s.ok()) return s;
  if (outputs_untouched()) return Status();
  *out = {static_cast<T*>(tensor.data), tensor.stride[0], rank == 2 ? tensor.stride[1] : 0};
  return Status();
}

Status Checker::outputs() {
  const int rank = args_.target.rank;
  const int64_t k = p_.targets;
  if (Status s = output("logp", args_.logp, ISOBIT_FP32, rank, k, "K", &p_.logp); !s.ok()) return s;
  if (Status s = output("lse", args_.lse, ISOBIT_FP32, 1, 1, "", &p_.lse); !s.ok()) return s;
  if (Status s = output("entropy", args_.entropy, ISOBIT_FP32, 1, 1, "", &p_.entropy); !s.ok()) return s;
  if (Status s = output("rank", args_.rank, ISOBIT_INT32, rank, k, "K", &p_.rank); !s.ok()) return s;
  if (Status s = output("target_logit", args_.target_logit, ISOBIT_FP32, rank, k, "K", &p_.target_logit); !s.ok()) {
    return s;
  }
  p_.wants_entropy = present(args_.entropy);
  p_.wants_rank = present(args_.rank);

  const isobit_tensor& top = args_.top_id;
  if (!present(top)) {
    if (present(args_.top_logp)) return refuse("top_logp", "top_id with it", "top_id absent");
  } else {
    if (shard() || merge()) {
      return refuse("top_id", "no top list in a shard or merge call", "one");
    }
    if (top.rank == 2) p_.top = top.shape[1];
    if (Status s = output("top_id", top, ISOBIT_INT32, 2, p_.top, "T", &p_.top_id); !s.ok()) return s;
    if (Status s = check_limit("top_id", "T", p_.top, 1, std::min(kMaxTop, p_.vocab)); !s.ok()) return s;
    if (Status s = output("top_logp", args_.top_logp, ISOBIT_FP32, 2, p_.top, "T", &p_.top_logp); !s.ok()) return s;
  }
  if (outputs_untouched() || backward()) return Status();
  return output_count_ > 0 ? Status() : refuse("logp", "at least one output", "none");
}

}  // namespace

Status check(const isobit_linear_logp_args* args, Purpose purpose, Params* params, void* state, MergeInput* merge) {
  *params = Params{};
  if (Status s = check_header(args); !s.ok()) return s;
  Checker checker(*args, purpose, params);
  if (Status s = checker.inputs(); !s.ok()) return s;
  if (Status s = checker.outputs(); !s.ok()) return s;
  if (purpose == Purpose::kQuery || purpose == Purpose::kShardQuery) return Status();
  if (purpose == Purpose::kShard) {
    if (Status s = check_state(*args, state, params); !s.ok()) return s;
  }
  if (purpose == Purpose::kMerge) {
    if (Status s = check_partition("states", merge, params->vocab, params->rows, &params->state_count); !s.ok()) {
      return s;
    }
    params->states = merge->ordered;
  }
  if (reinterpret_cast<uintptr_t>(args->workspace) % kWorkspaceAlignment != 0) {
    return refuse("workspace", "memory aligned to 256 bytes", "%p", args->workspace);
  }
  params->workspace = args->workspace;
  params->workspace_bytes = args->workspace_bytes;
  return check_overlaps(*args, *params);
}

}  // namespace isobit::linear_logp
