// A problem of the room's tests on a GPU: same operands, same outputs, so that bytes can be compared with the CPU.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "ops/linear_logp/test/problem.h"

namespace isobit::linear_logp::test {

// Owned device memory with guard bytes at both ends.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // misalignment: bytes by which the data lies off a multiple of 256.
  explicit DeviceMemory(size_t bytes, size_t misalignment = 0);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();
  void* data() const { return base_ == nullptr ? nullptr : base_ + kGuard + misalignment_; }
  size_t bytes() const { return bytes_; }
  void upload(const void* host) const;
  void download(void* host) const;
  bool guards_intact() const;

 private:
  static constexpr size_t kGuard = 256;
  unsigned char* base_ = nullptr;
  size_t bytes_ = 0;
  size_t misalignment_ = 0;
};

struct GpuOptions {
  const char* kernel = nullptr;
  bool minimum_workspace = false;
  size_t workspace_bytes = 0;  // 0: as queried
  cudaStream_t stream = nullptr;
  bool graph = false;       // captured on the first call, replayed twice
  size_t misalignment = 0;  // of hidden and weight
};

// Operands on the device.
class GpuProblem {
 public:
  explicit GpuProblem(const Problem& problem, size_t misalignment = 0);
  isobit_linear_logp_args args() const;
  // Arguments of the shard [first, last) of the vocabulary.
  isobit_linear_logp_args shard_args(int64_t first, int64_t last) const;
  const Problem& problem() const { return problem_; }

 private:
  const Problem& problem_;
  DeviceMemory hidden_, weight_, bias_, temperature_, target_;
};

// Outputs on the device, poisoned; fetch() brings them to the host.
class GpuOutputs {
 public:
  GpuOutputs(const Problem& problem, unsigned wanted);
  void attach(isobit_linear_logp_args* args);
  void poison() const;
  Outputs fetch() const;
  const DeviceMemory& target_logit() const { return memory_[4]; }

 private:
  static constexpr int kParts = 7;
  static Guarded* part(Outputs* outputs, int index);
  const Problem& problem_;
  unsigned wanted_;
  DeviceMemory memory_[kParts];
};

// One whole call, of which only `stream` and `graph` of the options are used.
void call_gpu(const isobit_linear_logp_args& args, const GpuOutputs& outputs, const GpuOptions& options);

Outputs run_gpu(const Problem& problem, unsigned wanted, const GpuOptions& options = {});

struct ShardedRun {
  Outputs outputs;
  std::vector<std::string> states;  // bytes of every shard's state, in the order of the cuts
};
ShardedRun run_gpu_sharded(const Problem& problem, const std::vector<int64_t>& cuts, unsigned wanted,
                           const GpuOptions& options = {});

// Rows of hidden on a stride of its own; what lies between them is poison.
void pad_rows(Problem* problem, int64_t stride);

}  // namespace isobit::linear_logp::test
