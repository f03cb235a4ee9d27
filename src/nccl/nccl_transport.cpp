#include "nccl/nccl_transport.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <future>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "nccl/nccl_library.h"

namespace isobit::nccl {
namespace {

Status check_cuda(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return Status();
  cudaGetLastError();
  return fail(ISOBIT_DEVICE_ERROR, "%s: %s", call, cudaGetErrorString(error));
}

// One group of sends and receives.
Status move_messages(const NcclLibrary& nccl, ncclComm_t communicator, std::span<const Message> sent,
                     std::span<const Message> received, cudaStream_t stream) {
  if (Status s = check(nccl, nccl.group_start(), "ncclGroupStart"); !s.ok()) return s;
  ncclResult_t result = ncclSuccess;
  for (const Message& m : sent) {
    if (result == ncclSuccess) result = nccl.send(m.data, m.bytes, ncclChar, m.peer, communicator, stream);
  }
  for (const Message& m : received) {
    if (result == ncclSuccess) result = nccl.receive(m.data, m.bytes, ncclChar, m.peer, communicator, stream);
  }
  const ncclResult_t ended = nccl.group_end();  // a group that was started is ended, whatever happened in it
  if (Status s = check(nccl, result, "ncclSend or ncclRecv"); !s.ok()) return s;
  return check(nccl, ended, "ncclGroupEnd");
}

// One gathering of host memory. A thread of its own runs it and owns it: NCCL connects a communicator's ranks inside
// its first collective, so that even to enqueue it may wait for a rank that never comes.
class Exchange {
 public:
  Exchange(const NcclLibrary& nccl, ncclComm_t communicator, int device, int rank, int ranks, const void* mine,
           size_t bytes, bool pairs)
      : nccl_(nccl),
        communicator_(communicator),
        device_(device),
        rank_(rank),
        ranks_(ranks),
        pairs_(pairs),
        offset_(static_cast<size_t>(rank) * bytes),
        bytes_(bytes),
        all_(static_cast<size_t>(ranks) * bytes) {
    std::memcpy(&all_[offset_], mine, bytes);
  }

  void run() {
    try {
      status_ = work();
    } catch (const std::bad_alloc&) {  // nothing may leave a thread that nobody joins
      status_ = fail(ISOBIT_INTERNAL_ERROR, "out of host memory");
    }
    if (!status_.ok()) message_ = last_error();
    cudaFree(memory_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    done_.set_value();
  }

  std::future<void> done() { return done_.get_future(); }
  const std::vector<char>& all() const { return all_; }
  Status status() const { return status_.ok() ? status_ : fail(status_.code(), "%s", message_.c_str()); }

 private:
  Status work() {
    if (Status s = check_cuda(cudaSetDevice(device_), "cudaSetDevice"); !s.ok()) return s;
    if (Status s = check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        !s.ok()) {
      return s;
    }
    if (Status s = check_cuda(cudaMalloc(&memory_, all_.size()), "cudaMalloc"); !s.ok()) return s;
    char* const mine = memory_ + offset_;
    // Both copies on the stream of the collective: one that does not wait for the default stream.
    if (Status s = copy(mine, &all_[offset_], bytes_); !s.ok()) return s;
    if (Status s = pairs_ ? swap(mine) : gather(mine); !s.ok()) return s;
    if (Status s = copy(all_.data(), memory_, all_.size()); !s.ok()) return s;
    return check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  Status copy(char* to, const char* from, size_t bytes) {
    return check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }
  Status gather(char* mine) {
    return check(nccl_, nccl_.all_gather(mine, memory_, bytes_, ncclChar, communicator_, stream_), "ncclAllGather");
  }
  Status swap(char* mine) {
    std::vector<Message> sent, received;
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      sent.push_back({peer, mine, bytes_});
      received.push_back({peer, memory_ + static_cast<size_t>(peer) * bytes_, bytes_});
    }
    return move_messages(nccl_, communicator_, sent, received, stream_);
  }

  NcclLibrary nccl_;
  ncclComm_t communicator_;
  int device_, rank_, ranks_;
  bool pairs_;
  size_t offset_;
  size_t bytes_;
  std::vector<char> all_;
  char* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Status status_;
  std::string message_;
  std::promise<void> done_;
};

class NcclTransport final : public Transport {
 public:
  Status open(void* communicator) {
    const NcclLibrary* nccl = nullptr;
    if (communicator == nullptr) return refuse("communicator", "an ncclComm_t", "null");
    if (Status s = find_nccl(&nccl); !s.ok()) return s;
    nccl_ = *nccl;
    communicator_ = static_cast<ncclComm_t>(communicator);
    if (Status s = check(nccl_, nccl_.comm_count(communicator_, &ranks_), "ncclCommCount"); !s.ok()) return s;
    if (Status s = check(nccl_, nccl_.comm_user_rank(communicator_, &rank_), "ncclCommUserRank"); !s.ok()) return s;
    return check(nccl_, nccl_.comm_cu_device(communicator_, &device_), "ncclCommCuDevice");
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  Status check_device(Device device) const override {
    if (device == Device{ISOBIT_CUDA, device_}) return Status();
    return refuse("hidden", "a tensor on the communicator's device", "%s %d, not cuda %d",
                  device.type == ISOBIT_CUDA ? "cuda" : "cpu", device.id, device_);
  }

  Status exchange(const void* mine, void* all, size_t bytes, int32_t timeout_ms, bool pairs) override {
    const auto exchange = std::make_shared<Exchange>(nccl_, communicator_, device_, rank_, ranks_, mine, bytes, pairs);
    const std::future<void> done = exchange->done();
    std::thread([exchange] { exchange->run(); }).detach();
    if (done.wait_for(std::chrono::milliseconds(timeout_ms)) != std::future_status::ready) {
      return fail(ISOBIT_DEVICE_ERROR, "communicator: expected %d ranks within %d ms, got no answer from all of them",
                  ranks_, timeout_ms);
    }
    if (Status s = exchange->status(); !s.ok()) return s;
    std::memcpy(all, exchange->all().data(), exchange->all().size());
    return Status();
  }

  Status all_gather(void* all, size_t bytes, void* stream) const override {
    const void* const mine = static_cast<char*>(all) + static_cast<size_t>(rank_) * bytes;
    return check(nccl_, nccl_.all_gather(mine, all, bytes, ncclChar, communicator_, static_cast<cudaStream_t>(stream)),
                 "ncclAllGather");
  }

  Status move(std::span<const Message> sent, std::span<const Message> received, void* stream) const override {
    return move_messages(nccl_, communicator_, sent, received, static_cast<cudaStream_t>(stream));
  }

 private:
  NcclLibrary nccl_;
  ncclComm_t communicator_ = nullptr;
  int rank_ = 0, ranks_ = 0, device_ = 0;
};

}  // namespace

Status make_nccl_transport(void* communicator, std::unique_ptr<Transport>* out) {
  auto transport = std::make_unique<NcclTransport>();
  if (Status s = transport->open(communicator); !s.ok()) return s;
  *out = std::move(transport);
  return Status();
}

}  // namespace isobit::nccl
