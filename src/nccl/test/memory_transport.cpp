#include "nccl/test/memory_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace isobit::nccl::test {
namespace {

constexpr int32_t kPatience = 20000;  // ms, of a call that must not wait at all

class MemoryTransport final : public Transport {
 public:
  MemoryTransport(MemoryNetwork* network, int rank) : network_(network), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return network_->ranks(); }

  Status check_device(Device device) const override {
    return device.type == ISOBIT_CPU ? Status() : refuse("hidden", "a CPU tensor", "another");
  }

  Status exchange(const void* mine, void* all, size_t bytes, int32_t timeout_ms, bool) override {
    if (network_->gather(rank_, mine, all, bytes, timeout_ms)) return Status();
    return fail(ISOBIT_DEVICE_ERROR, "a rank did not come within %d ms", timeout_ms);
  }

  Status all_gather(void* all, size_t bytes, void*) const override {
    auto* const states = static_cast<char*>(all);
    const std::vector<char> mine(states + static_cast<size_t>(rank_) * bytes,
                                 states + static_cast<size_t>(rank_ + 1) * bytes);
    if (!network_->gather(rank_, mine.data(), all, bytes, kPatience)) return fail(ISOBIT_DEVICE_ERROR, "gather");
    if (network_->fault() == MemoryNetwork::Fault::kLostState) std::fill_n(states + bytes, bytes, char{});  // rank 1's
    // Exponents of rank 0's first logits: the small ones become huge.
    const size_t flipped = network_->fault() == MemoryNetwork::Fault::kFlippedBits ? 100 : 0;
    for (size_t word = 0; word < flipped; ++word) states[4 * word + 3] ^= 0x40;
    return Status();
  }

  Status move(std::span<const Message> sent, std::span<const Message> received, void*) const override {
    if (network_->move(rank_, sent, received, kPatience)) return Status();
    return fail(ISOBIT_DEVICE_ERROR, "messages that do not match");
  }

 private:
  MemoryNetwork* network_;
  int rank_;
};

}  // namespace

bool MemoryNetwork::meet(std::unique_lock<std::mutex>* lock, int32_t timeout_ms) {
  const int64_t meeting = meetings_;
  if (++waiting_ == ranks()) {
    waiting_ = 0;
    ++meetings_;
    changed_.notify_all();
    return true;
  }
  return changed_.wait_for(*lock, std::chrono::milliseconds(timeout_ms), [&] { return meetings_ != meeting; });
}

bool MemoryNetwork::gather(int rank, const void* mine, void* all, size_t bytes, int32_t timeout_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  blocks_[static_cast<size_t>(rank)] = {mine, bytes};
  gathers_ += rank == 0 ? 1 : 0;
  if (!meet(&lock, timeout_ms)) return false;
  bool equal = true;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    equal = equal && blocks_[i].bytes == bytes;
    if (equal) std::memcpy(static_cast<char*>(all) + i * bytes, blocks_[i].data, bytes);
  }
  return meet(&lock, timeout_ms) && equal;  // nobody leaves, with the memory of its block, before all have read it
}

bool MemoryNetwork::move(int rank, std::span<const Message> sent, std::span<const Message> received,
                         int32_t timeout_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  sent_[static_cast<size_t>(rank)] = sent;
  for (const Message& message : sent)
    bytes_sent_[static_cast<size_t>(rank)] += message.peer != rank ? message.bytes : 0;
  moves_ += rank == 0 ? 1 : 0;
  if (!meet(&lock, timeout_ms)) return false;
  bool matched = true;
  std::vector<size_t> next(blocks_.size());  // of every peer's messages, the first that has not been looked at
  for (const Message& message : received) {
    const std::span<const Message> theirs = sent_[static_cast<size_t>(message.peer)];
    size_t& at = next[static_cast<size_t>(message.peer)];
    while (at < theirs.size() && theirs[at].peer != rank) ++at;
    matched = matched && at < theirs.size() && theirs[at].bytes == message.bytes && message.bytes > 0;
    if (matched) std::memcpy(message.data, theirs[at++].data, message.bytes);
  }
  if (fault_ == Fault::kLostMessage) std::memset(received.back().data, 0, received.back().bytes);
  for (int peer = 0; peer < ranks(); ++peer) {
    const std::span<const Message> theirs = sent_[static_cast<size_t>(peer)];
    for (size_t i = next[static_cast<size_t>(peer)]; i < theirs.size(); ++i)
      matched = matched && theirs[i].peer != rank;
  }
  return meet(&lock, timeout_ms) && matched;
}

std::unique_ptr<Transport> MemoryNetwork::transport(int rank) { return std::make_unique<MemoryTransport>(this, rank); }

std::vector<Answer> on_ranks(int ranks, const std::function<Status(int)>& call) {
  std::vector<Answer> answers(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  threads.reserve(answers.size());
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const Status status = call(rank);
      answers[static_cast<size_t>(rank)] = {status.code(), status.ok() ? "" : last_error()};
    });
  }
  for (std::thread& thread : threads) thread.join();
  return answers;
}

}  // namespace isobit::nccl::test
