// Ranks that are threads of one process, a GPU each, over NCCL.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nccl/test/memory_transport.h"

namespace isobit::nccl::test {

// Why ranks on GPUs cannot run on this machine; "" if they can.
std::string what_is_missing(int ranks);

// A function of the process's NCCL, loaded as a framework would.
void* nccl_symbol(const char* name);
template <class Function>
Function nccl_function(Function, const char* name) {
  return reinterpret_cast<Function>(nccl_symbol(name));
}

// One communicator a rank. Rank i is GPU i.
class GpuWorld {
 public:
  static Status open(int ranks, std::unique_ptr<GpuWorld>* out);
  GpuWorld() = default;
  ~GpuWorld();
  GpuWorld(const GpuWorld&) = delete;
  GpuWorld& operator=(const GpuWorld&) = delete;
  int ranks() const { return static_cast<int>(communicators_.size()); }
  void* communicator(int rank) const { return communicators_[static_cast<size_t>(rank)]; }

  // What is left to do with communicators after a rank did not come.
  void abort();

 private:
  std::vector<void*> communicators_;
};

// As on_ranks, each thread with its rank's GPU current. Memory is taken and freed outside of `call`s that wait for
// other ranks: cudaMalloc may wait for a GPU whose collective waits for this thread.
std::vector<Answer> on_gpus(int ranks, const std::function<Status(int)>& call);

}  // namespace isobit::nccl::test
