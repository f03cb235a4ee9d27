// Time of NCCL's collectives by size: what docs/scaling.md predicts from.
#include <nccl.h>

#include "nccl/bench/ranks.h"
#include "ops/linear_logp/bench/gpu_bench.cuh"

namespace isobit::nccl::bench {
namespace {

using linear_logp::bench::Buffer;
using linear_logp::bench::median;
using linear_logp::bench::require;
using linear_logp::bench::Timer;

// The process's NCCL.
struct Nccl {
  decltype(&ncclAllGather) all_gather = test::nccl_function(&ncclAllGather, "ncclAllGather");
  decltype(&ncclAllReduce) all_reduce = test::nccl_function(&ncclAllReduce, "ncclAllReduce");
  decltype(&ncclSend) send = test::nccl_function(&ncclSend, "ncclSend");
  decltype(&ncclRecv) receive = test::nccl_function(&ncclRecv, "ncclRecv");
  decltype(&ncclGroupStart) group_start = test::nccl_function(&ncclGroupStart, "ncclGroupStart");
  decltype(&ncclGroupEnd) group_end = test::nccl_function(&ncclGroupEnd, "ncclGroupEnd");
};

constexpr size_t kSizes[] = {4096, 65536, 1u << 20, 4u << 20, 16u << 20, 64u << 20, 256u << 20};  // bytes of a rank
constexpr size_t kLargest = 256u << 20;

class Link {
 public:
  Link(ncclComm_t communicator, int rank, int ranks)
      : communicator_(communicator), rank_(rank), ranks_(ranks), memory_(static_cast<int64_t>(kLargest) * ranks) {}

  // `bytes` of every rank to all.
  void all_gather(size_t bytes) {
    check(nccl_.all_gather(memory_.get() + bytes * rank_, memory_.get(), bytes, ncclChar, communicator_, nullptr));
  }
  // `bytes` of fp32 on every rank.
  void all_reduce(size_t bytes) {
    check(nccl_.all_reduce(memory_.get(), memory_.get(), bytes / 4, ncclFloat, ncclSum, communicator_, nullptr));
  }
  // `bytes` from every rank to every other.
  void swap(size_t bytes) {
    check(nccl_.group_start());
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      check(nccl_.send(memory_.get() + bytes * rank_, bytes, ncclChar, peer, communicator_, nullptr));
      check(nccl_.receive(memory_.get() + bytes * peer, bytes, ncclChar, peer, communicator_, nullptr));
    }
    check(nccl_.group_end());
  }

 private:
  static void check(ncclResult_t result) { require(result == ncclSuccess, "NCCL"); }
  Nccl nccl_;
  ncclComm_t communicator_;
  int rank_, ranks_;
  Buffer<unsigned char> memory_;
};

void print(const char* collective, size_t bytes, int ranks, const std::vector<double>& us, const Settings& settings) {
  std::printf("{\"op\":\"link\",\"collective\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"median_us\":%.2f,\"least_us\":%.2f,",
              collective, ranks, bytes, median(us), *std::min_element(us.begin(), us.end()));
  std::printf("\"gb_per_s\":%.1f,\"command\":\"%s\",\"date\":\"%s\"}\n", 1e-3 * static_cast<double>(bytes) / median(us),
              settings.command.c_str(), settings.date.c_str());
  std::fflush(stdout);
}

}  // namespace

void measure_link(Ranks* ranks, const Settings& settings) {
  const int count = ranks->world->ranks();
  constexpr const char* kNames[] = {"all_gather", "all_reduce", "swap"};
  constexpr void (Link::*kCalls[])(size_t) = {&Link::all_gather, &Link::all_reduce, &Link::swap};
  std::vector<Samples> samples(std::size(kNames) * std::size(kSizes), Samples(count, settings.samples));
  test::on_gpus(count, [&](int rank) {
    Link link(static_cast<ncclComm_t>(ranks->world->communicator(rank)), rank, count);
    Timer timer;
    auto* at = samples.data();
    for (const auto call : kCalls) {
      for (const size_t bytes : kSizes) {
        for (int i = -1; i < settings.samples; ++i) {  // the first warms up
          ranks->in_step.arrive_and_wait();
          const double us = timer.time([&] { (link.*call)(bytes); });
          if (i >= 0) at->at(rank, i) = us;
        }
        ++at;
      }
    }
    ranks->in_step.arrive_and_wait();
    return Status();
  });
  for (size_t i = 0; i < samples.size(); ++i) {
    print(kNames[i / std::size(kSizes)], kSizes[i % std::size(kSizes)], count, samples[i].longest(), settings);
  }
}

}  // namespace isobit::nccl::bench
