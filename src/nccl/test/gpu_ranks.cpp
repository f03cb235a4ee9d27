#include "nccl/test/gpu_ranks.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include <numeric>

namespace isobit::nccl::test {
namespace {

void* nccl() {
  static void* const handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
  return handle;
}

}  // namespace

std::string what_is_missing(int ranks) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < ranks) {
    return std::to_string(ranks) + " GPUs are needed, this machine has " + std::to_string(devices);
  }
  return nccl() != nullptr ? "" : "libnccl.so.2 is not on the loader's path";
}

void* nccl_symbol(const char* name) { return dlsym(nccl(), name); }

Status GpuWorld::open(int ranks, std::unique_ptr<GpuWorld>* out) {
  std::vector<int> devices(static_cast<size_t>(ranks));
  std::iota(devices.begin(), devices.end(), 0);
  std::vector<ncclComm_t> made(devices.size());
  const ncclResult_t result = nccl_function(&ncclCommInitAll, "ncclCommInitAll")(made.data(), ranks, devices.data());
  if (result != ncclSuccess) {
    return fail(ISOBIT_DEVICE_ERROR, "ncclCommInitAll: %s",
                nccl_function(&ncclGetErrorString, "ncclGetErrorString")(result));
  }
  *out = std::make_unique<GpuWorld>();
  (*out)->communicators_.assign(made.begin(), made.end());
  return Status();
}

GpuWorld::~GpuWorld() {
  on_gpus(ranks(), [this](int rank) {
    void* const mine = communicator(rank);
    if (mine != nullptr) nccl_function(&ncclCommDestroy, "ncclCommDestroy")(static_cast<ncclComm_t>(mine));
    return Status();
  });
}

void GpuWorld::abort() {
  on_gpus(ranks(), [this](int rank) {
    nccl_function(&ncclCommAbort, "ncclCommAbort")(static_cast<ncclComm_t>(communicator(rank)));
    communicators_[static_cast<size_t>(rank)] = nullptr;
    return Status();
  });
}

std::vector<Answer> on_gpus(int ranks, const std::function<Status(int)>& call) {
  return on_ranks(ranks, [&](int rank) {
    const cudaError_t error = cudaSetDevice(rank);
    return error == cudaSuccess ? call(rank) : fail(ISOBIT_DEVICE_ERROR, "%s", cudaGetErrorString(error));
  });
}

}  // namespace isobit::nccl::test
