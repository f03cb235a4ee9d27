#include "ops/linear_logp/backward_contract.h"

#include <array>
#include <utility>

#include "core/threads.h"
#include "ops/linear_logp/contract_memory.h"
#include "ops/linear_logp/saved.h"

namespace isobit::linear_logp {
namespace {

using Args = isobit_linear_logp_backward_args;

Purpose forward_purpose(BackwardPurpose purpose) {
  switch (purpose) {
    case BackwardPurpose::kWhole:
    case BackwardPurpose::kSave:
      return Purpose::kBackward;
    case BackwardPurpose::kShard:
      return Purpose::kBackwardShard;
    case BackwardPurpose::kShardQuery:
      return Purpose::kShardQuery;
    default:
      return Purpose::kQuery;
  }
}

std::array<std::pair<const char*, const isobit_tensor*>, 3> outputs_of(const isobit_linear_logp_args& f) {
  return {{{"logp", &f.logp}, {"lse", &f.lse}, {"entropy", &f.entropy}}};
}

Status check_header(const Args* args) {
  if (args == nullptr) return refuse("args", "a pointer", "null");
  if (args->struct_size != sizeof(Args)) {
    return refuse("struct_size", "sizeof(isobit_linear_logp_backward_args)", "%u, this library has %zu",
                  args->struct_size, sizeof(Args));
  }
  if (args->accumulate != 0 && args->accumulate != 1) return refuse("accumulate", "0 or 1", "%d", args->accumulate);
  if (args->subtract_p != 0 && args->subtract_p != 1) return refuse("subtract_p", "0 or 1", "%d", args->subtract_p);
  if (args->reserved != 0) return refuse("reserved", "0", "%d", args->reserved);
  return Status();
}

class Checker {
 public:
  Checker(const Args& args, BackwardPurpose purpose, BackwardParams* params)
      : args_(args), purpose_(purpose), p_(*params) {}

  Status forward();
  Status upstream();
  Status gradients();
  Status saved();
  Status segments() const;
  Status part(void* part);
  Status merge(MergeInput* parts);
  Status save_merge(MergeInput* states);
  Status overlaps() const;

 private:
  bool query() const { return purpose_ == BackwardPurpose::kQuery || purpose_ == BackwardPurpose::kShardQuery; }
  // A query does not look at pointers: anything non-null stands for a tensor's data.
  Status view(const char* name, const isobit_tensor& tensor, std::initializer_list<isobit_dtype> dtypes,
              std::initializer_list<int> ranks) const {
    isobit_tensor seen = tensor;
    if (query()) seen.data = const_cast<Args*>(&args_);
    if (Status s = check_view(name, seen, dtypes, ranks); !s.ok()) return s;
    return check_device(name, seen, p_.forward.device);
  }
  Status upstream_gradient(const char* name, const isobit_tensor& tensor, int rank, Upstream* out) const;
  Status gradient(const char* name, const isobit_tensor& tensor, int rank, int64_t rows, const char* letter,
                  GradientOutput* out) const;

  const Args& args_;
  BackwardPurpose purpose_;
  BackwardParams& p_;
};

Status Checker::forward() {
  if (Status s = check(&args_.forward, forward_purpose(purpose_), &p_.forward); !s.ok()) return s;
  if (p_.forward.dtype != ISOBIT_BF16) {
    return refuse("hidden", "bf16 in a backward call (dz underflows in fp16)", "%s", dtype_name(p_.forward.dtype));
  }
  if (present(args_.forward.rank)) return refuse("rank", "no rank in a backward call", "one");
  if (present(args_.forward.target_logit)) return refuse("target_logit", "none in a backward call", "one");
  if (present(args_.forward.top_id)) return refuse("top_id", "no top list in a backward call", "one");
  p_.weight_rows = args_.forward.weight.shape[0];
  p_.subtract_p = args_.subtract_p != 0;
  return Status();
}

Status Checker::upstream_gradient(const char* name, const isobit_tensor& tensor, int rank, Upstream* out) const {
  if (!present(tensor)) return Status();
  if (Status s = view(name, tensor, {ISOBIT_FP32}, {rank}); !s.ok()) return s;
  if (Status s = check_extent(name, tensor, 0, p_.forward.rows, "N"); !s.ok()) return s;
  if (rank == 2) {
    if (Status s = check_extent(name, tensor, 1, p_.forward.targets, "K"); !s.ok()) return s;
  }
  if (!query()) *out = {static_cast<const float*>(tensor.data), tensor.stride[0], rank == 2 ? tensor.stride[1] : 0};
  return Status();
}

Status Checker::upstream() {
  const int rank = args_.forward.target.rank;
  if (Status s = upstream_gradient("d_logp", args_.d_logp, rank, &p_.d_logp); !s.ok()) return s;
  if (Status s = upstream_gradient("d_lse", args_.d_lse, 1, &p_.d_lse); !s.ok()) return s;
  if (Status s = upstream_gradient("d_entropy", args_.d_entropy, 1, &p_.d_entropy); !s.ok()) return s;
  p_.wants_entropy_gradient = present(args_.d_entropy);
  if (query() || present(args_.d_logp) || present(args_.d_lse) || present(args_.d_entropy)) return Status();
  return refuse("d_logp", "at least one of d_logp, d_lse and d_entropy", "none");
}

Status Checker::gradient(const char* name, const isobit_tensor& tensor, int rank, int64_t rows, const char* letter,
                         GradientOutput* out) const {
  if (!present(tensor)) return Status();
  if (Status s = view(name, tensor, {ISOBIT_BF16, ISOBIT_FP32}, {rank}); !s.ok()) return s;
  if (Status s = check_extent(name, tensor, 0, rows, letter); !s.ok()) return s;
  if (rank == 2) {
    if (Status s = check_extent(name, tensor, 1, p_.forward.width, "H"); !s.ok()) return s;
    if (Status s = check_unit_stride(name, tensor, 1); !s.ok()) return s;
  }
  if (Status s = check_writable(name, tensor); !s.ok()) return s;
  if (!query()) *out = {tensor.data, tensor.dtype, tensor.stride[0]};
  return Status();
}

Status Checker::gradients() {
  const int64_t held = p_.weight_rows;
  p_.accumulate = args_.accumulate != 0;
  for (const isobit_tensor* tensor : {&args_.d_weight, &args_.d_bias}) {
    if (p_.accumulate && present(*tensor) && tensor->dtype != ISOBIT_FP32) {
      return refuse(tensor == &args_.d_weight ? "d_weight" : "d_bias", "fp32 with accumulate", "%s",
                    dtype_name(tensor->dtype));
    }
  }
  if (present(args_.d_hidden) && purpose_ == BackwardPurpose::kShard) {
    return refuse("d_hidden", "none in a shard call (its part holds the sums)", "one");
  }
  if (Status s = gradient("d_hidden", args_.d_hidden, 2, p_.forward.rows, "N", &p_.d_hidden); !s.ok()) return s;
  if (Status s = gradient("d_weight", args_.d_weight, 2, held, "Vw", &p_.d_weight); !s.ok()) return s;
  if (present(args_.d_bias) && !present(args_.forward.bias)) return refuse("d_bias", "a bias with it", "none");
  if (Status s = gradient("d_bias", args_.d_bias, 1, held, "Vw", &p_.d_bias); !s.ok()) return s;
  p_.wants_hidden = present(args_.d_hidden);
  p_.wants_weight = present(args_.d_weight);
  p_.wants_bias = present(args_.d_bias);
  return Status();
}

Status Checker::saved() {
  const bool writes = purpose_ == BackwardPurpose::kSave || purpose_ == BackwardPurpose::kSaveMerge;
  const bool needed = writes || purpose_ == BackwardPurpose::kShard;
  if (args_.saved == nullptr && needed && p_.forward.rows > 0) return refuse("saved", "a pointer", "null");
  if (reinterpret_cast<uintptr_t>(args_.saved) % kStateAlignment != 0) {
    return refuse("saved", "memory aligned to 16 bytes", "%p", args_.saved);
  }
  const isobit_linear_logp_args& f = args_.forward;
  if (!writes && args_.saved != nullptr && (present(f.logp) || present(f.lse) || present(f.entropy))) {
    return refuse("forward", "no logp, lse or entropy in a call that reads saved", "one");
  }
  p_.saved = args_.saved;
  return Status();
}

Status Checker::segments() const {
  const Params& f = p_.forward;
  if (segment_range(f.shard_ids(), f.vocab).whole) return Status();
  return refuse("first_id", "a shard whose borders are multiples of ceil(V / 16), or V",
                "[%lld, %lld), ceil(V / 16) = %lld", number(f.first_id), number(f.first_id + f.count),
                number(segment_ids(f.vocab)));
}

Status Checker::part(void* part) {
  if (reinterpret_cast<uintptr_t>(part) % kStateAlignment != 0) {
    return refuse("part", "memory aligned to 16 bytes", "%p", part);
  }
  p_.part = static_cast<float*>(part);
  p_.wants_hidden = part != nullptr;
  return part == nullptr ? Status() : segments();
}

Status Checker::merge(MergeInput* parts) {
  const isobit_tensor& out = args_.d_hidden;
  Params& f = p_.forward;
  f.device = {out.device_type, out.device_id};
  f.kernel = args_.forward.kernel;
  f.threads = args_.forward.threads;
  f.vocab = args_.forward.vocab_size;
  if (Status s = check_threads(f.threads); !s.ok()) return s;
  if (Status s = check_limit("vocab_size", "V", f.vocab, 1, kMaxVocab); !s.ok()) return s;
  if (!present(out)) return refuse("d_hidden", "the output of a merge", "none");
  f.rows = out.rank == 2 ? out.shape[0] : 0;
  f.width = out.rank == 2 ? out.shape[1] : 0;
  if (Status s = gradient("d_hidden", out, 2, f.rows, "N", &p_.d_hidden); !s.ok()) return s;
  if (Status s = check_limit("d_hidden", "N", f.rows, 0, kMaxRows); !s.ok()) return s;
  if (Status s = check_limit("d_hidden", "H", f.width, 1, kMaxWidth); !s.ok()) return s;
  if (Status s = check_partition("parts", parts, f.vocab, f.rows, &p_.part_count); !s.ok()) return s;
  p_.parts = parts->ordered;
  p_.wants_hidden = true;
  RegionList written;
  RegionList read;
  written.add("d_hidden", out);
  for (int32_t i = 0; i < p_.part_count; ++i) {
    const IdRange ids = p_.parts[i].ids;
    if (!segment_range(ids, f.vocab).whole) {
      return refuse("parts", "shards whose borders are multiples of ceil(V / 16), or V", "[%lld, %lld)",
                    number(ids.begin), number(ids.end));
    }
    read.add("parts", p_.parts[i].data, part_bytes(p_, ids));
  }
  return check_apart(written, read);
}

Status Checker::save_merge(MergeInput* states) {
  const isobit_linear_logp_args& f = args_.forward;
  if (Status s = check(&f, Purpose::kMerge, &p_.forward, nullptr, states); !s.ok()) return s;
  if (!present(f.entropy)) return refuse("entropy", "the output of shards that were asked for it", "none");
  if (present(f.rank)) return refuse("rank", "no rank in a backward call", "one");
  if (present(f.target_logit)) return refuse("target_logit", "none in a backward call", "one");
  if (args_.subtract_p == 0) return refuse("subtract_p", "1 where the rows come from states", "0");
  if (Status s = saved(); !s.ok()) return s;
  p_.subtract_p = true;
  RegionList written;
  RegionList read;
  written.add("saved", args_.saved, saved_bytes(p_.forward.rows));
  for (const auto& [name, tensor] : outputs_of(f)) read.add(name, *tensor);
  read.add("target", f.target);
  for (int32_t i = 0; i < p_.forward.state_count; ++i) {
    const StateView& state = p_.forward.states[i];
    read.add("states", state.data, state_bytes(p_.forward, state.ids));
  }
  return check_apart(written, read);
}

Status Checker::overlaps() const {
  const isobit_linear_logp_args& f = args_.forward;
  const bool saves = purpose_ == BackwardPurpose::kSave;
  RegionList written;
  RegionList read;
  if (!saves) {
    written.add("d_hidden", args_.d_hidden);
    written.add("d_weight", args_.d_weight);
    written.add("d_bias", args_.d_bias);
    written.add("part", p_.part, part_bytes(p_, p_.forward.shard_ids()));
    read.add("d_logp", args_.d_logp);
    read.add("d_lse", args_.d_lse);
    read.add("d_entropy", args_.d_entropy);
  }
  (saves ? written : read).add("saved", args_.saved, saved_bytes(p_.forward.rows));
  for (const auto& [name, tensor] : outputs_of(f)) written.add(name, *tensor);
  written.add("workspace", f.workspace, static_cast<int64_t>(f.workspace_bytes));
  for (const auto& [name, tensor] : {std::pair{"hidden", &f.hidden},
                                     {"weight", &f.weight},
                                     {"bias", &f.bias},
                                     {"target", &f.target},
                                     {"temperature", &f.temperature}}) {
    read.add(name, *tensor);
  }
  return check_apart(written, read);
}

}  // namespace

int64_t part_bytes(const BackwardParams& params, IdRange ids) {
  const SegmentRange segments = segment_range(ids, params.forward.vocab);
  return count_segment_nodes(segments) * params.forward.rows * params.forward.width * 4;
}

Status check_backward(const Args* args, BackwardPurpose purpose, BackwardParams* params, void* part,
                      MergeInput* merge) {
  *params = BackwardParams{};
  params->purpose = purpose;
  if (Status s = check_header(args); !s.ok()) return s;
  Checker checker(*args, purpose, params);
  if (purpose == BackwardPurpose::kMerge) return checker.merge(merge);
  if (purpose == BackwardPurpose::kSaveMerge) return checker.save_merge(merge);
  if (Status s = checker.forward(); !s.ok()) return s;
  const bool query = purpose == BackwardPurpose::kQuery || purpose == BackwardPurpose::kShardQuery;
  if (purpose != BackwardPurpose::kSave) {
    if (Status s = checker.upstream(); !s.ok()) return s;
    if (Status s = checker.gradients(); !s.ok()) return s;
  }
  if (query) return purpose == BackwardPurpose::kShardQuery ? checker.segments() : Status();
  if (Status s = checker.saved(); !s.ok()) return s;
  if (purpose == BackwardPurpose::kShard) {
    if (Status s = checker.part(part); !s.ok()) return s;
  }
  const bool wanted = params->wants_hidden || params->wants_weight || params->wants_bias;
  if (purpose != BackwardPurpose::kSave && !wanted) return refuse("d_hidden", "at least one gradient", "none");
  return checker.overlaps();
}

}  // namespace isobit::linear_logp
