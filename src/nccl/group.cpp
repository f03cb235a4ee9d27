#include "nccl/group.h"

#include <algorithm>

namespace isobit::nccl {
namespace {

Status check_creation(const Transport& transport, int32_t timeout_ms) {
  if (timeout_ms <= 0) return refuse("timeout_ms", "timeout_ms > 0", "%d", timeout_ms);
  if (transport.ranks() <= kMaxRanks) return Status();
  return refuse("communicator", "at most 128 ranks", "%d", transport.ranks());
}

}  // namespace

Status check_workspace(const isobit_linear_logp_args& args, size_t minimum) {
  if (args.workspace_bytes < minimum) {
    return fail(ISOBIT_WORKSPACE_TOO_SMALL, "workspace_bytes: expected %zu or more, got %zu", minimum,
                args.workspace_bytes);
  }
  return minimum == 0 || args.workspace != nullptr ? Status() : refuse("workspace", "a pointer", "null");
}

Status Group::agree(Status own, Agreement* mine, const isobit_tensor& hidden, int32_t timeout_ms) {
  if (own.ok()) {
    own = transport_->check_device({hidden.device_type, hidden.device_id});
    mine->refusal = own.code();
  }
  char reason[1024] = "";  // a refused rank takes part, so that the others do not wait for it, and says why itself
  if (!own.ok()) std::snprintf(reason, sizeof reason, "%s", last_error());
  if (Status s = transport_->exchange(mine, ranks_, sizeof *mine, timeout_ms, false); !s.ok()) return s;
  return own.ok() ? own : fail(own.code(), "%s", reason);
}

Status Group::begin(std::unique_ptr<Transport> transport, const Describe& describe, int32_t timeout_ms,
                    std::unique_ptr<Group>* out) {
  if (Status s = check_creation(*transport, timeout_ms); !s.ok()) return s;
  auto group = std::make_unique<Group>();
  group->transport_ = std::move(transport);
  Agreement mine;
  isobit_linear_logp_args forward = ISOBIT_LINEAR_LOGP_ARGS_INIT;
  const Status own = describe(&mine, &forward);
  if (Status s = group->agree(own, &mine, forward.hidden, timeout_ms); !s.ok()) return s;
  if (Status s = check_agreement(group->ranks_, group->transport_->ranks(), forward); !s.ok()) return s;
  if (Status s = group->set_slot_bytes(forward); !s.ok()) return s;
  *out = std::move(group);
  return Status();
}

Status Group::create(std::unique_ptr<Transport> transport, const isobit_linear_logp_args* args, int32_t timeout_ms,
                     std::unique_ptr<Group>* out) {
  const auto describe_call = [args](Agreement* mine, isobit_linear_logp_args* forward) {
    Status own = describe(args, mine);
    if (own.ok()) *forward = *args;
    return own;
  };
  return begin(std::move(transport), describe_call, timeout_ms, out);
}

Status Group::set_slot_bytes(const isobit_linear_logp_args& args) {
  for (int i = 0; i < transport_->ranks(); ++i) {
    const isobit_linear_logp_args other = args_of(ranks_[i], args);
    size_t bytes = 0;
    if (Status s = passed_on(isobit_linear_logp_state_bytes(&other, &bytes)); !s.ok()) return s;
    slot_bytes_ = std::max(slot_bytes_, aligned(bytes));
  }
  return Status();
}

Status Group::check_call(const isobit_linear_logp_args* args) const {
  Agreement call;
  if (Status s = describe(args, &call); !s.ok()) return s;
  if (Status s = check_unchanged(mine(), call, Agreement::kTraining); !s.ok()) return s;
  return transport_->check_device({args->hidden.device_type, args->hidden.device_id});
}

Status Group::workspace(const isobit_linear_logp_args* args, size_t* minimum, size_t* recommended) const {
  if (Status s = check_call(args); !s.ok()) return s;
  size_t least = 0;
  size_t enough = 0;
  if (Status s = passed_on(isobit_linear_logp_workspace(args, &least, &enough)); !s.ok()) return s;
  if (minimum != nullptr) *minimum = states_bytes() + least;
  if (recommended != nullptr) *recommended = states_bytes() + enough;
  return Status();
}

Status Group::gather_states(const isobit_linear_logp_args& shard, char* states, isobit_linear_logp_state* listed,
                            void* stream) const {
  for (int i = 0; i < transport_->ranks(); ++i) {
    listed[i] = {ranks_[i].first_id, ranks_[i].count, states + static_cast<size_t>(i) * slot_bytes_};
  }
  void* const mine = states + static_cast<size_t>(transport_->rank()) * slot_bytes_;
  if (Status s = passed_on(isobit_linear_logp_shard(&shard, mine, stream)); !s.ok()) return s;
  return slot_bytes_ > 0 ? transport_->all_gather(states, slot_bytes_, stream) : Status();  // no rows: nothing
}

Status Group::linear_logp(const isobit_linear_logp_args* args, void* stream) const {
  size_t minimum = 0;
  if (Status s = workspace(args, &minimum, nullptr); !s.ok()) return s;
  if (Status s = check_workspace(*args, minimum); !s.ok()) return s;
  auto* const states = static_cast<char*>(args->workspace);
  isobit_linear_logp_args shard = *args;
  shard.workspace = states + states_bytes();
  shard.workspace_bytes = args->workspace_bytes - states_bytes();
  isobit_linear_logp_state listed[kMaxRanks] = {};
  if (Status s = gather_states(shard, states, listed, stream); !s.ok()) return s;
  return passed_on(isobit_linear_logp_merge(args, listed, transport_->ranks(), stream));
}

}  // namespace isobit::nccl
