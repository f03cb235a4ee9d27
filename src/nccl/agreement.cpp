#include "nccl/agreement.h"

#include <algorithm>
#include <bit>

#include "core/tensor.h"

namespace isobit::nccl {
namespace {

constexpr const char* kNames[Agreement::kFields] = {"version of isobit",
                                                    "contract",
                                                    "compute capability",
                                                    "rows N",
                                                    "width H",
                                                    "vocab_size V",
                                                    "targets K",
                                                    "dtype of hidden",
                                                    "dtype of bias",
                                                    "presence of temperature",
                                                    "bits of temperature_value",
                                                    "bits of softcap",
                                                    "use_ignore_index",
                                                    "ignore_index",
                                                    "presence of entropy",
                                                    "presence of a backward pass",
                                                    "contract of the backward pass",
                                                    "upstream gradients (1 d_logp, 2 d_lse, 4 d_entropy)",
                                                    "dtype of d_hidden"};

long long number(int64_t value) { return static_cast<long long>(value); }

int64_t bits(float value) { return std::bit_cast<uint32_t>(value); }

// FNV-1a: equal for equal text on every rank, all that is asked of it.
int64_t hash(const char* text) {
  uint64_t h = 0xCBF29CE484222325u;
  for (; *text != 0; ++text) h = (h ^ static_cast<unsigned char>(*text)) * 0x100000001B3u;
  return static_cast<int64_t>(h);
}

int64_t capability_of(const isobit_tensor& tensor) {
  int32_t capability = 0;
  if (tensor.device_type == ISOBIT_CUDA) isobit_device_info(tensor.device_id, nullptr, 0, &capability);
  return capability;
}

// What this library refuses and the shard call of libisobit would take, then what that refuses.
Status check_own(const isobit_linear_logp_args* args) {
  size_t bytes = 0;
  if (Status s = passed_on(isobit_linear_logp_state_bytes(args, &bytes)); !s.ok()) return s;
  if (present(args->rank)) return refuse("rank", "none in a call over ranks", "one");
  return passed_on(isobit_linear_logp_workspace(args, &bytes, nullptr));
}

// `status` is what the rank itself has against its arguments.
Status describe_as(Status status, const isobit_linear_logp_args* args, Agreement* mine) {
  *mine = {};
  mine->field[Agreement::kVersion] = isobit_version();
  mine->field[Agreement::kContract] = hash(isobit_linear_logp_contract());
  mine->refusal = status.code();
  if (!status.ok()) return status;
  const auto set = [mine](Agreement::Field field, int64_t value) { mine->field[field] = value; };
  set(Agreement::kCapability, capability_of(args->hidden));
  set(Agreement::kRows, args->hidden.shape[0]);
  set(Agreement::kWidth, args->hidden.shape[1]);
  set(Agreement::kVocab, args->vocab_size);
  set(Agreement::kTargets, args->target.rank == 2 ? args->target.shape[1] : 1);
  set(Agreement::kDtype, args->hidden.dtype);
  set(Agreement::kBias, args->bias.dtype);
  set(Agreement::kTemperature, present(args->temperature) ? 1 : 0);
  set(Agreement::kTemperatureValue, present(args->temperature) ? 0 : bits(args->temperature_value));
  set(Agreement::kSoftcap, bits(args->softcap));
  set(Agreement::kUseIgnoreIndex, args->use_ignore_index);
  set(Agreement::kIgnoreIndex, args->use_ignore_index != 0 ? args->ignore_index : 0);
  set(Agreement::kEntropy, present(args->entropy) ? 1 : 0);
  mine->first_id = args->first_id;
  mine->count = std::max<int64_t>(0, std::min(args->weight.shape[0], args->vocab_size - args->first_id));
  return status;
}

// One field of all ranks' records.
Status check_equal(const Agreement* all, int ranks, int field) {
  const int64_t first = all[0].field[field];
  for (int i = 1; i < ranks; ++i) {
    const int64_t other = all[i].field[field];
    if (other == first) continue;
    return refuse(kNames[field], "the same on every rank", "%lld on rank 0 and %lld on rank %d", number(first),
                  number(other), i);
  }
  return Status();
}

}  // namespace

Status passed_on(isobit_status status) {
  return status == ISOBIT_OK ? Status() : fail(status, "%s", isobit_last_error());
}

Status describe(const isobit_linear_logp_args* args, Agreement* mine) {
  return describe_as(check_own(args), args, mine);
}

isobit_linear_logp_args training_forward(const isobit_linear_logp_backward_args& args) {
  isobit_linear_logp_args forward = args.forward;
  forward.entropy = forward.target;
  forward.entropy.dtype = ISOBIT_FP32;
  forward.entropy.rank = 1;
  forward.entropy.stride[0] = 1;
  return forward;
}

Status describe_training(const isobit_linear_logp_backward_args* args, Agreement* mine) {
  size_t bytes = 0;
  Status status = passed_on(isobit_linear_logp_backward_workspace(args, &bytes, nullptr));
  isobit_linear_logp_args forward = ISOBIT_LINEAR_LOGP_ARGS_INIT;
  if (status.ok()) {
    forward = training_forward(*args);
    status = check_own(&forward);
  }
  status = describe_as(status, &forward, mine);
  if (!status.ok()) return status;
  mine->field[Agreement::kTraining] = 1;
  mine->field[Agreement::kBackwardContract] = hash(isobit_linear_logp_backward_contract());
  mine->field[Agreement::kUpstream] =
      (present(args->d_logp) ? 1 : 0) + (present(args->d_lse) ? 2 : 0) + (present(args->d_entropy) ? 4 : 0);
  mine->field[Agreement::kHiddenGradient] = args->d_hidden.dtype;
  return status;
}

isobit_linear_logp_args args_of(const Agreement& rank, const isobit_linear_logp_args& args) {
  isobit_linear_logp_args other = args;
  other.first_id = rank.first_id;
  other.weight.shape[0] = rank.count;
  if (present(other.bias)) other.bias.shape[0] = rank.count;
  return other;
}

isobit_linear_logp_backward_args args_of(const Agreement& rank, const isobit_linear_logp_backward_args& args) {
  isobit_linear_logp_backward_args other = args;
  other.forward = args_of(rank, args.forward);
  other.d_weight = other.d_bias = {};
  return other;
}

Status check_agreement(const Agreement* all, int ranks, const isobit_linear_logp_args& args) {
  if (Status s = check_equal(all, ranks, Agreement::kVersion); !s.ok()) return s;
  for (int i = 0; i < ranks; ++i) {
    if (all[i].refusal == ISOBIT_OK) continue;
    return fail(static_cast<isobit_status>(all[i].refusal), "rank %d: its own arguments were refused (%s)", i,
                isobit_status_string(static_cast<isobit_status>(all[i].refusal)));
  }
  for (int f = 0; f < Agreement::kFields; ++f) {
    if (Status s = check_equal(all, ranks, f); !s.ok()) return s;
  }
  // A merge of no rows does nothing but check that the ranges partition the vocabulary.
  isobit_linear_logp_args none = args;
  none.target.shape[0] = 0;
  none.logp = none.entropy = none.target_logit = {};
  none.lse = none.target;
  none.lse.dtype = ISOBIT_FP32;
  none.lse.rank = 1;
  isobit_linear_logp_state ranges[kMaxRanks] = {};
  for (int i = 0; i < ranks; ++i) ranges[i] = {all[i].first_id, all[i].count, nullptr};
  if (isobit_linear_logp_merge(&none, ranges, ranks, nullptr) == ISOBIT_OK) return Status();
  return fail(ISOBIT_INVALID_ARGUMENT, "ranges of %d ranks: %s", ranks, isobit_last_error());
}

Status check_unchanged(const Agreement& agreed, const Agreement& call, int fields) {
  for (int f = 0; f < fields; ++f) {
    if (agreed.field[f] == call.field[f]) continue;
    return refuse(kNames[f], "what the ranks agreed upon", "%lld after %lld", number(call.field[f]),
                  number(agreed.field[f]));
  }
  if (agreed.first_id == call.first_id && agreed.count == call.count) return Status();
  return refuse("first_id", "the range that the ranks agreed upon", "[%lld, %lld) after [%lld, %lld)",
                number(call.first_id), number(call.first_id + call.count), number(agreed.first_id),
                number(agreed.first_id + agreed.count));
}

}  // namespace isobit::nccl
