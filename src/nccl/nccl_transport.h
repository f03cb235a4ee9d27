// Ranks of an NCCL communicator, one GPU each.
#pragma once

#include <memory>

#include "nccl/transport.h"

namespace isobit::nccl {

// `communicator` is an ncclComm_t that belongs to the caller.
Status make_nccl_transport(void* communicator, std::unique_ptr<Transport>* out);

}  // namespace isobit::nccl
