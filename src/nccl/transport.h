// What a group of ranks needs of its network. NCCL is one; tests bring ranks that are threads of one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace isobit::nccl {

// Bytes on their way to a rank or from it.
struct Message {
  int peer;
  void* data;
  size_t bytes;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Tensors of a call must live where the transport moves bytes.
  virtual Status check_device(Device device) const = 0;

  // Gathers `bytes` of host memory of every rank, in the ranks' order. Returns when they are there; an error if a rank
  // does not come within the time. With `pairs` the bytes travel as `move`'s do, which makes that ready.
  virtual Status exchange(const void* mine, void* all, size_t bytes, int32_t timeout_ms, bool pairs) = 0;

  // Gathers `bytes` of every rank in the stream's order: this rank's stand at all + rank() * bytes. Never synchronises.
  virtual Status all_gather(void* all, size_t bytes, void* stream) const = 0;

  // One collective in the stream's order: the messages of every pair of ranks, a rank and itself too, meet in order.
  // None is empty. Never synchronises.
  virtual Status move(std::span<const Message> sent, std::span<const Message> received, void* stream) const = 0;
};

}  // namespace isobit::nccl
