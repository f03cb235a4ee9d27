// linear_logp over GPUs beside each of them alone, in turns, with the L2 flushed before each call.
// Then what a prediction needs: shard passes and merges of 1 to 16 shares on one GPU, and NCCL's collectives alone.
//
//   nccl_bench_ranks [--ranks 2] [--samples 11] [--date 2026-11-30] [--no-link] [--training] [N,H,V ...]
#include <cuda_runtime.h>

#include <cstring>
#include <memory>

#include "nccl/bench/operands.cuh"

namespace isobit::nccl::bench {
namespace {

// What the ranks do in turn, all at the same time, so that every GPU is as busy and as warm as the others: the whole
// call each for itself, the call over ranks, and of that the shard pass alone.
enum Turn { kWhole, kOverRanks, kShard, kTurns };

struct Measured {
  Measured(int ranks, int samples) : outputs(2, std::vector<std::vector<float>>(static_cast<size_t>(ranks))) {
    for (int turn = 0; turn < kTurns; ++turn) us.emplace_back(ranks, samples);
  }
  std::vector<Samples> us;                               // [turn]
  std::vector<std::vector<std::vector<float>>> outputs;  // [kWhole or kOverRanks][rank]
  size_t slot = 0;
};

Status run_rank(Ranks* ranks, int rank, const Shape& shape, int samples, Measured* measured) {
  const int count = ranks->world->ranks();
  const Operands operands(shape, rank);
  isobit_linear_logp_args whole = operands.args(0, shape.vocab);
  const Workspace whole_memory(whole_workspace(whole), &whole);
  isobit_linear_logp_args mine = operands.args(border(shape, rank, count), border(shape, rank + 1, count));
  isobit_tp* tp = nullptr;
  require_ok(isobit_tp_create(ranks->world->communicator(rank), &mine, 30000, &tp), isobit_tp_last_error());
  size_t bytes = 0;
  size_t slot = 0;
  require_ok(isobit_tp_workspace(tp, &mine, nullptr, &bytes), isobit_tp_last_error());
  require_ok(isobit_tp_state_bytes(tp, &slot), isobit_tp_last_error());
  if (rank == 0) measured->slot = slot;
  const Workspace memory(bytes, &mine);
  const Buffer<unsigned char> state(static_cast<int64_t>(slot));
  Timer timer;
  for (int i = -1; i < samples; ++i) {  // the first round warms up
    for (int turn = 0; turn < kTurns; ++turn) {
      ranks->in_step.arrive_and_wait();
      const double us = timer.time([&] {
        if (turn == kWhole) require_ok(isobit_linear_logp(&whole, nullptr), isobit_last_error());
        if (turn == kOverRanks) require_ok(isobit_tp_linear_logp(tp, &mine, nullptr), isobit_tp_last_error());
        if (turn == kShard) require_ok(isobit_linear_logp_shard(&mine, state.get(), nullptr), isobit_last_error());
      });
      if (i >= 0) measured->us[static_cast<size_t>(turn)].at(rank, i) = us;
      if (turn != kShard) measured->outputs[static_cast<size_t>(turn)][static_cast<size_t>(rank)] = operands.outputs();
    }
  }
  ranks->in_step.arrive_and_wait();
  isobit_tp_destroy(tp);
  return Status();
}

// Medians of every rank.
void print_ranks(const char* name, const Samples& samples, int ranks) {
  std::printf("\"%s\":[", name);
  for (int rank = 0; rank < ranks; ++rank) std::printf("%s%.1f", rank > 0 ? "," : "", median(samples.of(rank)));
  std::printf("],");
}

void measure_ranks(Ranks* ranks, const Shape& shape, const Settings& settings) {
  const int count = ranks->world->ranks();
  Measured measured(count, settings.samples);
  test::on_gpus(count, [&](int rank) { return run_rank(ranks, rank, shape, settings.samples, &measured); });
  bool equal = true;
  double one = median(measured.us[kWhole].of(0));
  for (int rank = 0; rank < count; ++rank) {
    const auto i = static_cast<size_t>(rank);
    const std::vector<float>& expected = measured.outputs[kWhole][0];
    equal = equal && std::memcmp(measured.outputs[kOverRanks][i].data(), expected.data(), expected.size() * 4) == 0;
    one = std::min(one, median(measured.us[kWhole].of(rank)));  // the fastest GPU is what the ranks are held against
  }
  const std::vector<double> all = measured.us[kOverRanks].longest();
  print_start("linear_logp_ranks", count, shape);
  print_samples(all);
  std::printf("\"peer\":\"one GPU\",\"peer_median_us\":%.2f,\"ratio\":%.4f,\"efficiency\":%.4f,", one,
              median(all) / one, one / median(all) / count);
  print_ranks("one_gpu_us", measured.us[kWhole], count);
  print_ranks("rank_us", measured.us[kOverRanks], count);
  print_ranks("shard_us", measured.us[kShard], count);
  std::printf("\"state_bytes\":%zu,\"equal_bytes\":%s,", measured.slot, equal ? "true" : "false");
  print_end(settings);
}

// A number of shares of the vocabulary on one GPU: the last one's shard pass, and the merge of all states.
class Shares {
 public:
  Shares(int shares, const Operands& operands, const Shape& shape)
      : mine_(operands.args(border(shape, shares - 1, shares), shape.vocab)), merge_(operands.args(0, shape.vocab)) {
    for (int i = 0; i < shares; ++i) {
      isobit_linear_logp_args args = operands.args(border(shape, i, shares), border(shape, i + 1, shares));
      const Workspace workspace(whole_workspace(args), &args);
      size_t bytes = 0;
      require_ok(isobit_linear_logp_state_bytes(&args, &bytes), isobit_last_error());
      largest = std::max(largest, bytes);
      memory_.push_back(std::make_unique<Buffer<unsigned char>>(static_cast<int64_t>(bytes)));
      states_.push_back({args.first_id, args.weight.shape[0], memory_.back()->get()});
      require_ok(isobit_linear_logp_shard(&args, memory_.back()->get(), nullptr), isobit_last_error());
      require(cudaDeviceSynchronize(), "a shard pass");
    }
    workspace_ = std::make_unique<Workspace>(whole_workspace(mine_), &mine_);
  }

  void sample(Timer* timer) {
    shard_us.push_back(timer->time(
        [this] { require_ok(isobit_linear_logp_shard(&mine_, memory_.back()->get(), nullptr), isobit_last_error()); }));
    merge_us.push_back(timer->time([this] {
      const auto count = static_cast<int32_t>(states_.size());
      require_ok(isobit_linear_logp_merge(&merge_, states_.data(), count, nullptr), isobit_last_error());
    }));
  }

  std::vector<double> shard_us, merge_us;
  size_t largest = 0;

 private:
  isobit_linear_logp_args mine_, merge_;
  std::vector<std::unique_ptr<Buffer<unsigned char>>> memory_;
  std::vector<isobit_linear_logp_state> states_;
  std::unique_ptr<Workspace> workspace_;
};

// In turns, so that all numbers of shares meet the same clocks.
void measure_shares(const Operands& operands, const Shape& shape, const Settings& settings) {
  std::vector<std::unique_ptr<Shares>> all;
  for (const int shares : kShares) all.push_back(std::make_unique<Shares>(shares, operands, shape));
  Timer timer;
  for (int sample = 0; sample < settings.samples; ++sample) {
    for (const auto& shares : all) shares->sample(&timer);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    print_start("linear_logp_share", kShares[i], shape);
    print_samples(all[i]->shard_us);
    std::printf("\"merge_us\":%.2f,\"state_bytes\":%zu,", median(all[i]->merge_us), all[i]->largest);
    print_end(settings);
  }
}

struct Command {
  Settings settings;
  int ranks = 2;
  bool link = true;
  bool training = false;
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
    } else if (std::strcmp(argv[i], "--training") == 0) {
      command.training = true;
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
  for (const Shape& shape : command.shapes) {
    if (command.training) measure_training(&ranks, shape, command.settings);
  }
  if (command.link) measure_link(&ranks, command.settings);
  require(cudaSetDevice(0), "cudaSetDevice");
  for (const Shape& shape : command.shapes) {
    const Operands operands(shape, 0);
    measure_shares(operands, shape, command.settings);
    if (command.training) measure_training_shares(operands, shape, command.settings);
  }
  return 0;
}

}  // namespace
}  // namespace isobit::nccl::bench

int main(int argc, char** argv) { return isobit::nccl::bench::run(argc, argv); }
