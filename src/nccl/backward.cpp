// The backward pass of a group. d_weight and d_bias are a rank's own. Of d_hidden every rank adds one block of rows,
// from the parts of all ranks in the segments' tree, and sends the sums to the others: a rank sends less than one part
// and one d_hidden however many ranks there are, where gathering the parts would take ranks - 1 of them.
#include <algorithm>
#include <array>

#include "nccl/group.h"

namespace isobit::nccl {
namespace {

using Args = isobit_linear_logp_backward_args;

constexpr int kSegments = 16;  // of the vocabulary; a part's nodes cover one each, or more

// Rows of d_hidden that a rank adds.
struct Block {
  int64_t first, count;
};

// What travels for d_hidden, and where it lies in the workspace: this rank's part, then of every rank the block's rows
// of its part.
class Plan {
 public:
  Plan(const Agreement& agreed, const int64_t* nodes, int rank, int ranks)
      : rows_(agreed.field[Agreement::kRows]),
        row_bytes_(static_cast<size_t>(agreed.field[Agreement::kWidth]) * sizeof(float)),
        out_row_bytes_(row_bytes_ / (agreed.field[Agreement::kHiddenGradient] == ISOBIT_FP32 ? 1 : 2)),
        nodes_(nodes),
        rank_(rank),
        ranks_(ranks) {}

  Block block(int rank) const {
    const int64_t first = rows_ * rank / ranks_;
    return {first, rows_ * (rank + 1) / ranks_ - first};
  }
  size_t part_bytes() const { return aligned(bytes(nodes_[rank_] * rows_)); }
  size_t received_bytes(int from) const { return aligned(bytes(nodes_[from] * block(rank_).count)); }
  size_t memory_bytes() const {
    size_t sum = part_bytes();
    for (int i = 0; i < ranks_; ++i) sum += received_bytes(i);
    return sum;
  }
  size_t sent_bytes() const {
    const int64_t own = block(rank_).count;
    return bytes(nodes_[rank_] * (rows_ - own)) + static_cast<size_t>(own * (ranks_ - 1)) * out_row_bytes_;
  }

  // Every rank's rows of the parts to that rank. Lists the parts of this rank's rows as a merge wants them.
  Status exchange_parts(const Transport& transport, char* memory, isobit_linear_logp_state* parts, void* stream) const;
  // This rank's rows of d_hidden to all others.
  Status gather_rows(const Transport& transport, char* d_hidden, void* stream) const;
  char* row(char* d_hidden, int64_t row) const { return d_hidden + static_cast<size_t>(row) * out_row_bytes_; }

 private:
  size_t bytes(int64_t rows) const { return static_cast<size_t>(rows) * row_bytes_; }

  int64_t rows_;
  size_t row_bytes_, out_row_bytes_;
  const int64_t* nodes_;
  int rank_, ranks_;
};

Status Plan::exchange_parts(const Transport& transport, char* memory, isobit_linear_logp_state* parts,
                            void* stream) const {
  std::array<Message, kSegments * kMaxRanks> sent;
  std::array<Message, kSegments> received;
  size_t sends = 0;
  size_t receives = 0;
  const int64_t own = block(rank_).count;
  char* into = memory + part_bytes();
  for (int peer = 0; peer < ranks_; ++peer) {
    const Block theirs = block(peer);
    parts[peer].data = into;
    for (int64_t node = 0; node < nodes_[rank_] && theirs.count > 0; ++node)
      sent[sends++] = {peer, memory + bytes(node * rows_ + theirs.first), bytes(theirs.count)};
    for (int64_t node = 0; node < nodes_[peer] && own > 0; ++node)
      received[receives++] = {peer, into + bytes(node * own), bytes(own)};
    into += received_bytes(peer);
  }
  return transport.move({sent.data(), sends}, {received.data(), receives}, stream);
}

Status Plan::gather_rows(const Transport& transport, char* d_hidden, void* stream) const {
  std::array<Message, kMaxRanks> sent;
  std::array<Message, kMaxRanks> received;
  size_t sends = 0;
  size_t receives = 0;
  const Block own = block(rank_);
  for (int peer = 0; peer < ranks_; ++peer) {
    const Block theirs = block(peer);
    if (peer == rank_) continue;
    if (own.count > 0)
      sent[sends++] = {peer, row(d_hidden, own.first), static_cast<size_t>(own.count) * out_row_bytes_};
    if (theirs.count > 0)
      received[receives++] = {peer, row(d_hidden, theirs.first), static_cast<size_t>(theirs.count) * out_row_bytes_};
  }
  return transport.move({sent.data(), sends}, {received.data(), receives}, stream);
}

}  // namespace

Status Group::create_training(std::unique_ptr<Transport> transport, const Args* args, int32_t timeout_ms,
                              std::unique_ptr<Group>* out) {
  const auto describe_call = [args](Agreement* mine, isobit_linear_logp_args* forward) {
    Status own = describe_training(args, mine);
    if (own.ok()) *forward = training_forward(*args);
    return own;
  };
  std::unique_ptr<Group> group;
  if (Status s = begin(std::move(transport), describe_call, timeout_ms, &group); !s.ok()) return s;
  if (present(args->d_hidden)) {
    if (Status s = group->set_nodes(*args); !s.ok()) return s;
    char ready[kMaxRanks] = {};
    if (Status s = group->transport_->exchange(ready, ready, 1, timeout_ms, true); !s.ok()) return s;
  }
  *out = std::move(group);
  return Status();
}

// All ranks look at all ranges, so that they say the same of a border inside a segment.
Status Group::set_nodes(const Args& args) {
  const auto node_bytes =
      static_cast<int64_t>(sizeof(float)) * mine().field[Agreement::kRows] * mine().field[Agreement::kWidth];
  for (int i = 0; i < transport_->ranks(); ++i) {
    const Args other = args_of(ranks_[i], args);
    size_t bytes = 0;
    const isobit_status status = isobit_linear_logp_part_bytes(&other, &bytes);
    if (status != ISOBIT_OK) return fail(status, "rank %d: %s", i, isobit_last_error());
    nodes_[i] = node_bytes > 0 ? static_cast<int64_t>(bytes) / node_bytes : 0;
    if (nodes_[i] > kSegments) {
      return fail(ISOBIT_INTERNAL_ERROR, "rank %d: expected at most %d nodes of d_hidden, got %lld", i, kSegments,
                  static_cast<long long>(nodes_[i]));
    }
  }
  return Status();
}

size_t Group::backward_bytes() const {
  if (mine().field[Agreement::kHiddenGradient] == ISOBIT_NONE) return 0;
  return Plan(mine(), nodes_, transport_->rank(), transport_->ranks()).sent_bytes();
}

Status Group::check_training(const Args* args) const {
  if (mine().field[Agreement::kTraining] == 0) {
    return refuse("tp", "an agreement of isobit_tp_create_training", "one of isobit_tp_create");
  }
  size_t bytes = 0;
  return passed_on(isobit_linear_logp_saved_bytes(args, &bytes));
}

Status Group::check_backward(const Args* args) const {
  if (Status s = check_training(args); !s.ok()) return s;
  Agreement call;
  if (Status s = describe_training(args, &call); !s.ok()) return s;
  if (Status s = check_unchanged(mine(), call, Agreement::kFields); !s.ok()) return s;
  const isobit_linear_logp_args& forward = args->forward;
  if (Status s = transport_->check_device({forward.hidden.device_type, forward.hidden.device_id}); !s.ok()) return s;
  const isobit_tensor& out = args->d_hidden;
  if (!present(out) || out.shape[0] <= 1 || out.stride[0] == out.shape[1]) return Status();
  return refuse("d_hidden", "rows without gaps in a call over ranks (stride[0] == H)", "stride[0] = %lld, H = %lld",
                static_cast<long long>(out.stride[0]), static_cast<long long>(out.shape[1]));
}

Status Group::backward_workspace(const Args* args, size_t* minimum, size_t* recommended) const {
  if (Status s = check_training(args); !s.ok()) return s;
  const isobit_linear_logp_args forward = training_forward(*args);
  if (Status s = check_call(&forward); !s.ok()) return s;
  size_t save[2] = {};
  size_t both[2] = {};
  if (Status s = passed_on(isobit_linear_logp_workspace(&forward, &save[0], &save[1])); !s.ok()) return s;
  if (Status s = passed_on(isobit_linear_logp_backward_workspace(args, &both[0], &both[1])); !s.ok()) return s;
  const size_t parts = gradient_bytes();
  if (minimum != nullptr) *minimum = std::max(states_bytes() + save[0], parts + both[0]);
  if (recommended != nullptr) *recommended = std::max(states_bytes() + save[1], parts + both[1]);
  return Status();
}

size_t Group::gradient_bytes() const {
  if (mine().field[Agreement::kHiddenGradient] == ISOBIT_NONE) return 0;
  return Plan(mine(), nodes_, transport_->rank(), transport_->ranks()).memory_bytes();
}

Status Group::save(const Args* args, void* stream) const {
  size_t minimum = 0;
  if (Status s = backward_workspace(args, &minimum, nullptr); !s.ok()) return s;
  if (Status s = check_call(&args->forward); !s.ok()) return s;
  if (args->subtract_p != 1) return refuse("subtract_p", "1 in a call over ranks", "%d", args->subtract_p);
  if (args->saved == nullptr && mine().field[Agreement::kRows] > 0) return refuse("saved", "a pointer", "null");
  if (Status s = check_workspace(args->forward, minimum); !s.ok()) return s;
  auto* const states = static_cast<char*>(args->forward.workspace);
  isobit_linear_logp_args shard = args->forward;
  shard.workspace = states + states_bytes();
  shard.workspace_bytes = args->forward.workspace_bytes - states_bytes();
  isobit_linear_logp_state listed[kMaxRanks] = {};
  if (Status s = gather_states(shard, states, listed, stream); !s.ok()) return s;
  return passed_on(isobit_linear_logp_save_merge(args, listed, transport_->ranks(), stream));
}

Status Group::backward(const Args* args, void* stream) const {
  size_t minimum = 0;
  if (Status s = check_backward(args); !s.ok()) return s;
  if (Status s = backward_workspace(args, &minimum, nullptr); !s.ok()) return s;
  if (Status s = check_workspace(args->forward, minimum); !s.ok()) return s;
  const bool wanted = present(args->d_hidden) && mine().field[Agreement::kRows] > 0;
  if (wanted && args->d_hidden.data == nullptr) return refuse("d_hidden", "data", "null");
  auto* const memory = static_cast<char*>(args->forward.workspace);
  Args shard = *args;
  shard.d_hidden = {};
  shard.forward.workspace = memory + gradient_bytes();
  shard.forward.workspace_bytes = args->forward.workspace_bytes - gradient_bytes();
  void* const part = wanted ? memory : nullptr;
  if (Status s = passed_on(isobit_linear_logp_backward_shard(&shard, part, stream)); !s.ok() || !wanted) return s;

  const int rank = transport_->rank();
  const Plan plan(mine(), nodes_, rank, transport_->ranks());
  isobit_linear_logp_state parts[kMaxRanks] = {};
  for (int i = 0; i < transport_->ranks(); ++i) parts[i] = {ranks_[i].first_id, ranks_[i].count, nullptr};
  if (Status s = plan.exchange_parts(*transport_, memory, parts, stream); !s.ok()) return s;
  auto* const d_hidden = static_cast<char*>(args->d_hidden.data);
  Args merge = *args;
  merge.d_hidden.data = plan.row(d_hidden, plan.block(rank).first);
  merge.d_hidden.shape[0] = plan.block(rank).count;
  if (merge.d_hidden.shape[0] > 0) {
    const isobit_status status = isobit_linear_logp_backward_merge(&merge, parts, transport_->ranks(), stream);
    if (Status s = passed_on(status); !s.ok()) return s;
  }
  return plan.gather_rows(*transport_, d_hidden, stream);
}

}  // namespace isobit::nccl
