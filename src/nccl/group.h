// A rank's side of a group: the agreement at creation, and the calls that rely on it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "nccl/agreement.h"
#include "nccl/transport.h"

namespace isobit::nccl {

// Of what lies in a workspace; states need 16.
constexpr size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

class Group {
 public:
  // Synchronises with the other ranks.
  static Status create(std::unique_ptr<Transport> transport, const isobit_linear_logp_args* args, int32_t timeout_ms,
                       std::unique_ptr<Group>* out);
  static Status create_training(std::unique_ptr<Transport> transport, const isobit_linear_logp_backward_args* args,
                                int32_t timeout_ms, std::unique_ptr<Group>* out);

  size_t slot_bytes() const { return slot_bytes_; }
  size_t backward_bytes() const;  // that this rank sends
  Status workspace(const isobit_linear_logp_args* args, size_t* minimum, size_t* recommended) const;
  Status linear_logp(const isobit_linear_logp_args* args, void* stream) const;

  // backward.cpp
  Status backward_workspace(const isobit_linear_logp_backward_args* args, size_t* minimum, size_t* recommended) const;
  Status save(const isobit_linear_logp_backward_args* args, void* stream) const;
  Status backward(const isobit_linear_logp_backward_args* args, void* stream) const;

 private:
  // Reads a rank's arguments: its record, and the forward call on which its states depend. What it has against them.
  using Describe = std::function<Status(Agreement* mine, isobit_linear_logp_args* forward)>;
  // What every creation begins with: the exchange, its verdict, and the size of the states.
  static Status begin(std::unique_ptr<Transport> transport, const Describe& describe, int32_t timeout_ms,
                      std::unique_ptr<Group>* out);
  // own: what the rank has against its arguments.
  Status agree(Status own, Agreement* mine, const isobit_tensor& hidden, int32_t timeout_ms);
  Status check_call(const isobit_linear_logp_args* args) const;
  Status check_training(const isobit_linear_logp_backward_args* args) const;
  Status check_backward(const isobit_linear_logp_backward_args* args) const;
  Status set_slot_bytes(const isobit_linear_logp_args& args);
  Status set_nodes(const isobit_linear_logp_backward_args& args);
  const Agreement& mine() const { return ranks_[transport_->rank()]; }
  size_t gradient_bytes() const;  // of a workspace: the parts of d_hidden
  size_t states_bytes() const { return slot_bytes_ * static_cast<size_t>(transport_->ranks()); }
  // Runs the shard pass into this rank's slot of `states`, gathers the others', and lists them.
  Status gather_states(const isobit_linear_logp_args& shard, char* states, isobit_linear_logp_state* listed,
                       void* stream) const;

  std::unique_ptr<Transport> transport_;
  Agreement ranks_[kMaxRanks] = {};
  size_t slot_bytes_ = 0;          // room for the largest state of all ranks
  int64_t nodes_[kMaxRanks] = {};  // nodes of the segment tree in a rank's part of d_hidden
};

Status check_workspace(const isobit_linear_logp_args& args, size_t minimum);

}  // namespace isobit::nccl
