// A rank's side of a group: the agreement at creation, and the calls that rely on it.
#pragma once

#include <cstddef>
#include <memory>

#include "nccl/agreement.h"
#include "nccl/transport.h"

namespace isobit::nccl {

class Group {
 public:
  // Synchronises with the other ranks.
  static Status create(std::unique_ptr<Transport> transport, const isobit_linear_logp_args* args, int32_t timeout_ms,
                       std::unique_ptr<Group>* out);

  size_t slot_bytes() const { return slot_bytes_; }
  Status workspace(const isobit_linear_logp_args* args, size_t* minimum, size_t* recommended) const;
  Status linear_logp(const isobit_linear_logp_args* args, void* stream) const;

 private:
  Status check_call(const isobit_linear_logp_args* args) const;
  Status set_slot_bytes(const isobit_linear_logp_args& args);
  size_t states_bytes() const { return slot_bytes_ * static_cast<size_t>(transport_->ranks()); }

  std::unique_ptr<Transport> transport_;
  Agreement ranks_[kMaxRanks] = {};
  size_t slot_bytes_ = 0;  // room for the largest state of all ranks
};

}  // namespace isobit::nccl
