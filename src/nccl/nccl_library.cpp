#include "nccl/nccl_library.h"

#include <dlfcn.h>

#include <atomic>

namespace isobit::nccl {
namespace {

template <class Function>
bool find(void* handle, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(handle, name));
  return *out != nullptr;
}

bool find_all(void* handle, NcclLibrary* out) {
  return find(handle, "ncclCommCount", &out->comm_count) && find(handle, "ncclCommUserRank", &out->comm_user_rank) &&
         find(handle, "ncclCommCuDevice", &out->comm_cu_device) && find(handle, "ncclAllGather", &out->all_gather) &&
         find(handle, "ncclSend", &out->send) && find(handle, "ncclRecv", &out->receive) &&
         find(handle, "ncclGroupStart", &out->group_start) && find(handle, "ncclGroupEnd", &out->group_end) &&
         find(handle, "ncclGetErrorString", &out->error_string);
}

}  // namespace

Status find_nccl(const NcclLibrary** out) {
  // The handle that RTLD_NOLOAD returns is kept: it holds the library for as long as this one may call into it.
  // Until there is one, every call looks again.
  static std::atomic<void*> kept{nullptr};
  void* loaded = kept.load();
  if (loaded == nullptr) kept.store(loaded = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD));
  thread_local NcclLibrary library;
  *out = &library;
  if (find_all(RTLD_DEFAULT, &library) || (loaded != nullptr && find_all(loaded, &library))) return Status();
  return fail(ISOBIT_UNSUPPORTED, "communicator: expected a process with NCCL (libnccl.so.2) loaded, got none");
}

Status check(const NcclLibrary& library, ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return Status();
  return fail(ISOBIT_DEVICE_ERROR, "%s: %s", call, library.error_string(result));
}

}  // namespace isobit::nccl
