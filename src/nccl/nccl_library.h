// The NCCL of the process. It is neither linked nor opened anew: a communicator points into the library that made it,
// and a framework has loaded one already.
#pragma once

#include <nccl.h>

#include "core/status.h"

namespace isobit::nccl {

struct NcclLibrary {
  decltype(&ncclCommCount) comm_count = nullptr;
  decltype(&ncclCommUserRank) comm_user_rank = nullptr;
  decltype(&ncclCommCuDevice) comm_cu_device = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
};

// Looks among the program's symbols, then for a loaded libnccl.so.2.
Status find_nccl(const NcclLibrary** out);

// The status of a call to it.
Status check(const NcclLibrary& library, ncclResult_t result, const char* call);

}  // namespace isobit::nccl
