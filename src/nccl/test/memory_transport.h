// Ranks that are threads of one process: the group's code without a GPU.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "isobit/linear_logp.h"
#include "nccl/group.h"

namespace isobit::nccl::test {

class MemoryNetwork {
 public:
  enum class Fault { kNone, kLostState, kFlippedBits, kLostMessage };  // of what is in flight
  explicit MemoryNetwork(int ranks, Fault fault = Fault::kNone)
      : fault_(fault), blocks_(static_cast<size_t>(ranks)), sent_(blocks_.size()), bytes_sent_(blocks_.size()) {}
  int ranks() const { return static_cast<int>(blocks_.size()); }
  Fault fault() const { return fault_; }
  int gathers() const { return gathers_; }

  // False if a rank does not come within the time, or brings another number of bytes.
  bool gather(int rank, const void* mine, void* all, size_t bytes, int32_t timeout_ms);

  // False likewise, or if the messages of two ranks do not match.
  bool move(int rank, std::span<const Message> sent, std::span<const Message> received, int32_t timeout_ms);
  int64_t bytes_sent(int rank) const { return bytes_sent_[static_cast<size_t>(rank)]; }  // in moves, to others
  int moves() const { return moves_; }

  std::unique_ptr<Transport> transport(int rank);

 private:
  struct Block {
    const void* data;
    size_t bytes;
  };
  bool meet(std::unique_lock<std::mutex>* lock, int32_t timeout_ms);

  Fault fault_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Block> blocks_;
  std::vector<std::span<const Message>> sent_;
  std::vector<int64_t> bytes_sent_;
  int moves_ = 0;
  int waiting_ = 0;
  int64_t meetings_ = 0;
  int gathers_ = 0;
};

struct Answer {
  isobit_status status = ISOBIT_INTERNAL_ERROR;
  std::string message;  // "" if OK
};

// Runs `call` as every rank of the network in a thread each and returns their answers.
std::vector<Answer> on_ranks(int ranks, const std::function<Status(int)>& call);

}  // namespace isobit::nccl::test
