// linear_logp over GPUs beside one of them, in pairs: one GPU, all GPUs, one GPU, ... with the L2 flushed before each.
// Then what a prediction needs: shard passes and merges of 1 to 16 shares on one GPU, and NCCL's collectives alone.
//
//   nccl_bench_ranks [--ranks 2] [--samples 11] [--date 2026-11-30] [--no-link] [N,H,V ...]
#include <cuda_runtime.h>

#include <cstring>
#include <memory>

#include "isobit/tensor_parallel.h"
#include "nccl/bench/ranks.h"
#include "ops/linear_logp/bench/gpu_bench.cuh"

namespace isobit::nccl::bench {
namespace {

using namespace isobit::linear_logp::bench;

struct Shape {
  int64_t rows, width, vocab;
};

void require_ok(isobit_status status, const char* message) { require(status == ISOBIT_OK, message); }

// All operands on one GPU, the whole vocabulary's; the same values on every GPU.
class Operands {
 public:
  Operands(const Shape& shape, int device)
      : shape_(shape),
        device_(device),
        hidden_(shape.rows * shape.width),
        weight_(shape.vocab * shape.width),
        target_(shape.rows),
        outputs_(3 * shape.rows) {
    fill_normal<<<2048, 256>>>(hidden_.get(), shape.rows * shape.width, 1.0f, 1);
    fill_normal<<<4096, 256>>>(weight_.get(), shape.vocab * shape.width, 0.02f, 7777777777ull);
    fill_targets<<<1, 256>>>(target_.get(), shape.rows, shape.vocab);
    require(cudaDeviceSynchronize(), "filling");
  }

  isobit_linear_logp_args args(int64_t first, int64_t last) const {
    isobit_linear_logp_args a = ISOBIT_LINEAR_LOGP_ARGS_INIT;
    a.hidden = here(view(hidden_.get(), ISOBIT_BF16, shape_.rows, shape_.width));
    a.weight = here(view(weight_.get() + first * shape_.width, ISOBIT_BF16, last - first, shape_.width));
    a.target = here(view(target_.get(), ISOBIT_INT32, shape_.rows));
    a.logp = here(view(outputs_.get(), ISOBIT_FP32, shape_.rows));
    a.lse = here(view(outputs_.get() + shape_.rows, ISOBIT_FP32, shape_.rows));
    a.entropy = here(view(outputs_.get() + 2 * shape_.rows, ISOBIT_FP32, shape_.rows));
    a.first_id = first;
    a.vocab_size = shape_.vocab;
    return a;
  }

  std::vector<float> outputs() const {
    std::vector<float> host(static_cast<size_t>(3 * shape_.rows));
    require(cudaMemcpy(host.data(), outputs_.get(), host.size() * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    require(cudaMemset(outputs_.get(), 0xA5, host.size() * 4), "cudaMemset");
    return host;
  }

 private:
  isobit_tensor here(isobit_tensor t) const {
    t.device_id = device_;
    return t;
  }

  Shape shape_;
  int device_;
  Buffer<uint16_t> hidden_, weight_;
  Buffer<int32_t> target_;
  Buffer<float> outputs_;
};

// Border i of n: the multiple of 128 below the equal share.
int64_t border(const Shape& shape, int i, int n) { return i == n ? shape.vocab : shape.vocab * i / n / 128 * 128; }

class Workspace {
 public:
  Workspace(size_t bytes, isobit_linear_logp_args* args) : memory_(static_cast<int64_t>(bytes)) {
    args->workspace = memory_.get();
    args->workspace_bytes = bytes;
  }

 private:
  Buffer<unsigned char> memory_;
};

size_t whole_workspace(const isobit_linear_logp_args& args) {
  size_t bytes = 0;
  require_ok(isobit_linear_logp_workspace(&args, nullptr, &bytes), isobit_last_error());
  return bytes;
}

void print_start(const char* what, int ranks, const Shape& shape) {
  std::printf("{\"op\":\"%s\",\"kernel\":\"sm90\",\"ranks\":%d,\"outputs\":\"logp,lse,entropy\",", what, ranks);
  std::printf("\"shape\":{\"N\":%lld,\"H\":%lld,\"V\":%lld},\"dtype\":\"bfloat16\",",
              static_cast<long long>(shape.rows), static_cast<long long>(shape.width),
              static_cast<long long>(shape.vocab));
}

void print_end(const Settings& settings) {
  std::printf("\"gpu\":\"NVIDIA H200\",\"warm\":false,\"command\":\"%s\",\"date\":\"%s\"}\n", settings.command.c_str(),
              settings.date.c_str());
  std::fflush(stdout);
}

void print_samples(const std::vector<double>& us) {
  std::printf("\"samples_us\":[");
  for (size_t i = 0; i < us.size(); ++i) std::printf("%s%.1f", i > 0 ? "," : "", us[i]);
  std::printf("],\"median_us\":%.2f,", median(us));
}

// One GPU and all of them, in pairs. Every rank's outputs against the one GPU's.
void measure_ranks(Ranks* ranks, const Shape& shape, const Settings& settings) {
  const int count = ranks->world->ranks();
  Samples over_ranks(count, settings.samples);
  std::vector<double> one(static_cast<size_t>(settings.samples));
  std::vector<std::vector<float>> outputs(static_cast<size_t>(count) + 1);
  size_t slot = 0;
  test::on_gpus(count, [&](int rank) {
    const Operands operands(shape, rank);
    isobit_linear_logp_args whole = operands.args(0, shape.vocab);
    const Workspace whole_memory(whole_workspace(whole), &whole);
    isobit_linear_logp_args shard = operands.args(border(shape, rank, count), border(shape, rank + 1, count));
    isobit_tp* tp = nullptr;
    require_ok(isobit_tp_create(ranks->world->communicator(rank), &shard, 30000, &tp), isobit_tp_last_error());
    size_t bytes = 0;
    require_ok(isobit_tp_workspace(tp, &shard, nullptr, &bytes), isobit_tp_last_error());
    if (rank == 0) require_ok(isobit_tp_state_bytes(tp, &slot), isobit_tp_last_error());
    const Workspace shard_memory(bytes, &shard);
    Timer timer;
    for (int i = -1; i < settings.samples; ++i) {  // the first pair warms up
      ranks->in_step.arrive_and_wait();
      if (rank == 0) {
        const double us = timer.time([&] { require_ok(isobit_linear_logp(&whole, nullptr), isobit_last_error()); });
        if (i >= 0) one[static_cast<size_t>(i)] = us;
        outputs.back() = operands.outputs();
      }
      ranks->in_step.arrive_and_wait();
      const double us =
          timer.time([&] { require_ok(isobit_tp_linear_logp(tp, &shard, nullptr), isobit_tp_last_error()); });
      if (i >= 0) over_ranks.at(rank, i) = us;
      outputs[static_cast<size_t>(rank)] = operands.outputs();
    }
    ranks->in_step.arrive_and_wait();
    isobit_tp_destroy(tp);
    return Status();
  });
  bool equal = true;
  for (int rank = 0; rank < count; ++rank) {
    equal = equal && std::memcmp(outputs[static_cast<size_t>(rank)].data(), outputs.back().data(),
                                 outputs.back().size() * sizeof(float)) == 0;
  }
  const std::vector<double> all = over_ranks.longest();
  print_start("linear_logp_ranks", count, shape);
  print_samples(all);
  std::printf("\"peer\":\"one GPU\",\"peer_median_us\":%.2f,\"ratio\":%.4f,\"efficiency\":%.4f,", median(one),
              median(all) / median(one), median(one) / median(all) / count);
  std::printf("\"state_bytes\":%zu,\"equal_bytes\":%s,", slot, equal ? "true" : "false");
  print_end(settings);
}

// Shares of the vocabulary on one GPU: the longest shard pass and the merge of all states.
void measure_shares(int shares, const Operands& operands, const Shape& shape, const Settings& settings) {
  std::vector<isobit_linear_logp_state> states;
  std::vector<std::unique_ptr<Buffer<unsigned char>>> memory;
  Timer timer;
  std::vector<double> shard_us, merge_us;
  size_t largest = 0;
  for (int i = 0; i < shares; ++i) {
    isobit_linear_logp_args args = operands.args(border(shape, i, shares), border(shape, i + 1, shares));
    const Workspace workspace(whole_workspace(args), &args);
    size_t bytes = 0;
    require_ok(isobit_linear_logp_state_bytes(&args, &bytes), isobit_last_error());
    largest = std::max(largest, bytes);
    memory.push_back(std::make_unique<Buffer<unsigned char>>(static_cast<int64_t>(bytes)));
    states.push_back({args.first_id, args.weight.shape[0], memory.back()->get()});
    const int samples = i + 1 == shares ? settings.samples : 0;  // the last share is the widest
    for (int sample = -1; sample < samples; ++sample) {
      const double us = timer.time(
          [&] { require_ok(isobit_linear_logp_shard(&args, memory.back()->get(), nullptr), isobit_last_error()); });
      if (sample >= 0) shard_us.push_back(us);
    }
    require(cudaDeviceSynchronize(), "a shard pass");
  }
  const isobit_linear_logp_args merge = operands.args(0, shape.vocab);
  for (int sample = -1; sample < settings.samples; ++sample) {
    const double us = timer.time(
        [&] { require_ok(isobit_linear_logp_merge(&merge, states.data(), shares, nullptr), isobit_last_error()); });
    if (sample >= 0) merge_us.push_back(us);
  }
  print_start("linear_logp_share", shares, shape);
  print_samples(shard_us);
  std::printf("\"merge_us\":%.2f,\"state_bytes\":%zu,", median(merge_us), largest);
  print_end(settings);
}

struct Command {
  Settings settings;
  int ranks = 2;
  bool link = true;
  std::vector<Shape> shapes;
};

Command parse(int argc, char** argv) {
  Command command;
  command.settings.command = "nccl_bench_ranks";
  for (int i = 1; i < argc; ++i) command.settings.command += std::string(" ") + argv[i];
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--samples") == 0 && more) {
      command.settings.samples = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--ranks") == 0 && more) {
      command.ranks = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--date") == 0 && more) {
      command.settings.date = argv[++i];
    } else if (std::strcmp(argv[i], "--no-link") == 0) {
      command.link = false;
    } else {
      long long n = 0, h = 0, v = 0;
      require(std::sscanf(argv[i], "%lld,%lld,%lld", &n, &h, &v) == 3, "reading N,H,V");
      command.shapes.push_back({n, h, v});
    }
  }
  if (command.shapes.empty()) command.shapes = {{8192, 4096, 151936}};
  return command;
}

int run(int argc, char** argv) {
  const Command command = parse(argc, argv);
  const std::string missing = test::what_is_missing(command.ranks);
  require(missing.empty(), missing.c_str());
  std::unique_ptr<test::GpuWorld> world;
  require(test::GpuWorld::open(command.ranks, &world).ok(), last_error());
  Ranks ranks(world.get());
  for (const Shape& shape : command.shapes) measure_ranks(&ranks, shape, command.settings);
  if (command.link) measure_link(&ranks, command.settings);
  require(cudaSetDevice(0), "cudaSetDevice");
  for (const Shape& shape : command.shapes) {
    const Operands operands(shape, 0);
    for (const int shares : {1, 2, 4, 8, 16}) measure_shares(shares, operands, shape, command.settings);
  }
  return 0;
}

}  // namespace
}  // namespace isobit::nccl::bench

int main(int argc, char** argv) { return isobit::nccl::bench::run(argc, argv); }
