// A training step over ranks, forward with what the backward pass needs and then all gradients, beside one GPU's.
// d_hidden in bf16, d_weight in fp32, as a trainer has them.
#include <cuda_runtime.h>

#include <cstring>
#include <memory>

#include "nccl/bench/operands.cuh"

namespace isobit::nccl::bench {
namespace {

using Args = isobit_linear_logp_backward_args;

__global__ void fill(float* data, int64_t count, float value) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) data[i] = value;
}

// The two calls of a step on one GPU for the ids [first, last), and their memory but for the workspace.
class Step {
 public:
  Step(const Operands& operands, const Shape& shape, int device, int64_t first, int64_t last)
      : d_hidden_(shape.rows * shape.width),
        d_weight_((last - first) * shape.width),
        d_logp_(shape.rows),
        saved_(64 * shape.rows + 256) {
    const auto here = [device](isobit_tensor t) {
      t.device_id = device;
      return t;
    };
    using linear_logp::bench::view;
    fill<<<static_cast<unsigned>(shape.rows / 256 + 1), 256>>>(d_logp_.get(), shape.rows, -1.0f / 1024);
    backward = ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT;
    backward.forward = operands.args(first, last);
    backward.subtract_p = 1;
    backward.saved = saved_.get();
    backward.d_logp = here(view(d_logp_.get(), ISOBIT_FP32, shape.rows));
    backward.d_hidden = here(view(d_hidden_.get(), ISOBIT_BF16, shape.rows, shape.width));
    backward.d_weight = here(view(d_weight_.get(), ISOBIT_FP32, last - first, shape.width));
    forward = backward;
    backward.forward.logp = backward.forward.lse = backward.forward.entropy = {};
    require(cudaDeviceSynchronize(), "filling");
  }
  void use(const Buffer<unsigned char>& workspace, size_t bytes) {
    for (Args* args : {&forward, &backward}) {
      args->forward.workspace = workspace.get();
      args->forward.workspace_bytes = bytes;
    }
  }
  std::vector<uint16_t> d_hidden(const Shape& shape) const {
    std::vector<uint16_t> host(static_cast<size_t>(shape.rows * shape.width));
    require(cudaMemcpy(host.data(), d_hidden_.get(), host.size() * 2, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return host;
  }

  Args forward, backward;

 private:
  Buffer<uint16_t> d_hidden_;
  Buffer<float> d_weight_, d_logp_;
  Buffer<unsigned char> saved_;
};

// Whole segments: without them there is no d_hidden over ranks.
int64_t segment_border(const Shape& shape, int i, int n) {
  return std::min(shape.vocab, (shape.vocab + 15) / 16 * (16 * i / n));
}

// [alone or over ranks][save, backward]
using Times = std::vector<std::vector<Samples>>;

Status run_rank(Ranks* ranks, int rank, const Shape& shape, int samples, Times* times, size_t* sent,
                std::vector<std::vector<uint16_t>>* gradients) {
  const int count = ranks->world->ranks();
  const Operands operands(shape, rank);
  Step whole(operands, shape, rank, 0, shape.vocab);
  Step mine(operands, shape, rank, segment_border(shape, rank, count), segment_border(shape, rank + 1, count));
  isobit_tp* tp = nullptr;
  require_ok(isobit_tp_create_training(ranks->world->communicator(rank), &mine.backward, 30000, &tp),
             isobit_tp_last_error());
  size_t whole_bytes = 0;
  size_t bytes = 0;
  require_ok(isobit_linear_logp_backward_workspace(&whole.backward, nullptr, &whole_bytes), isobit_last_error());
  require_ok(isobit_tp_backward_workspace(tp, &mine.backward, nullptr, &bytes), isobit_tp_last_error());
  require_ok(isobit_tp_backward_bytes(tp, sent), isobit_tp_last_error());
  const Buffer<unsigned char> workspace(static_cast<int64_t>(std::max(whole_bytes, bytes)));
  whole.use(workspace, whole_bytes);
  mine.use(workspace, bytes);
  Timer timer;
  for (int i = -1; i < samples; ++i) {  // the first round warms up
    for (int over = 0; over < 2; ++over) {
      for (int call = 0; call < 2; ++call) {
        ranks->in_step.arrive_and_wait();
        const double us = timer.time([&] {
          if (over == 1) {
            const auto run = call == 0 ? isobit_tp_linear_logp_save : isobit_tp_linear_logp_backward;
            require_ok(run(tp, call == 0 ? &mine.forward : &mine.backward, nullptr), isobit_tp_last_error());
          } else {
            const auto run = call == 0 ? isobit_linear_logp_save : isobit_linear_logp_backward;
            require_ok(run(call == 0 ? &whole.forward : &whole.backward, nullptr), isobit_last_error());
          }
        });
        if (i >= 0) (*times)[static_cast<size_t>(over)][static_cast<size_t>(call)].at(rank, i) = us;
      }
    }
  }
  ranks->in_step.arrive_and_wait();
  (*gradients)[static_cast<size_t>(rank)] = mine.d_hidden(shape);
  if (rank == 0) gradients->back() = whole.d_hidden(shape);
  isobit_tp_destroy(tp);
  return Status();
}

}  // namespace

void measure_training(Ranks* ranks, const Shape& shape, const Settings& settings) {
  const int count = ranks->world->ranks();
  Times times(2, std::vector<Samples>(2, Samples(count, settings.samples)));
  std::vector<size_t> sent(static_cast<size_t>(count));
  std::vector<std::vector<uint16_t>> gradients(static_cast<size_t>(count) + 1);
  test::on_gpus(count, [&](int rank) {
    return run_rank(ranks, rank, shape, settings.samples, &times, &sent[static_cast<size_t>(rank)], &gradients);
  });
  bool equal = true;
  for (const auto& gradient : gradients) equal = equal && gradient == gradients.back();
  constexpr const char* kOps[] = {"linear_logp_ranks_save", "linear_logp_ranks_backward"};
  for (size_t call = 0; call < 2; ++call) {
    const std::vector<double> all = times[1][call].longest();
    double one = median(times[0][call].of(0));
    for (int rank = 1; rank < count; ++rank) one = std::min(one, median(times[0][call].of(rank)));
    print_start(kOps[call], count, shape);
    print_samples(all);
    std::printf("\"peer\":\"one GPU\",\"peer_median_us\":%.2f,\"ratio\":%.4f,\"efficiency\":%.4f,", one,
                median(all) / one, one / median(all) / count);
    std::printf("\"sent_bytes\":%zu,\"equal_bytes\":%s,", call == 1 ? sent[0] : size_t{0}, equal ? "true" : "false");
    print_end(settings);
  }
}

// A number of shares of the vocabulary on one GPU: the last one's gradients, and the merge of all parts of d_hidden.
class TrainingShares {
 public:
  TrainingShares(int shares, const Operands& operands, const Shape& shape, Step* whole,
                 const Buffer<unsigned char>& workspace, size_t bytes)
      : whole_(whole) {
    for (int i = 0; i < shares; ++i) {
      const int64_t first = segment_border(shape, i, shares);
      const int64_t last = segment_border(shape, i + 1, shares);
      mine_ = std::make_unique<Step>(operands, shape, 0, first, last);
      mine_->use(workspace, bytes);
      mine_->backward.saved = whole->backward.saved;
      mine_->backward.d_hidden = {};
      size_t part_bytes = 0;
      require_ok(isobit_linear_logp_part_bytes(&mine_->backward, &part_bytes), isobit_last_error());
      memory_.push_back(std::make_unique<Buffer<unsigned char>>(static_cast<int64_t>(part_bytes)));
      parts_.push_back({first, last - first, memory_.back()->get()});
      shard();
      require(cudaDeviceSynchronize(), "a shard pass");
    }
  }

  void sample(Timer* timer) {
    shard_us.push_back(timer->time([this] { shard(); }));
    merge_us.push_back(timer->time([this] {
      const auto count = static_cast<int32_t>(parts_.size());
      require_ok(isobit_linear_logp_backward_merge(&whole_->backward, parts_.data(), count, nullptr),
                 isobit_last_error());
    }));
  }

  std::vector<double> shard_us, merge_us;

 private:
  void shard() {
    require_ok(isobit_linear_logp_backward_shard(&mine_->backward, memory_.back()->get(), nullptr),
               isobit_last_error());
  }

  Step* whole_;
  std::unique_ptr<Step> mine_;
  std::vector<std::unique_ptr<Buffer<unsigned char>>> memory_;
  std::vector<isobit_linear_logp_state> parts_;
};

void measure_training_shares(const Operands& operands, const Shape& shape, const Settings& settings) {
  Step whole(operands, shape, 0, 0, shape.vocab);
  size_t bytes = 0;
  require_ok(isobit_linear_logp_backward_workspace(&whole.backward, nullptr, &bytes), isobit_last_error());
  const Buffer<unsigned char> workspace(static_cast<int64_t>(bytes));
  whole.use(workspace, bytes);
  require_ok(isobit_linear_logp_save(&whole.forward, nullptr), isobit_last_error());
  std::vector<std::unique_ptr<TrainingShares>> all;
  for (const int shares : kShares) {
    all.push_back(std::make_unique<TrainingShares>(shares, operands, shape, &whole, workspace, bytes));
  }
  Timer timer;
  for (int sample = 0; sample < settings.samples; ++sample) {
    for (const auto& shares : all) shares->sample(&timer);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    print_start("linear_logp_backward_share", kShares[i], shape);
    print_samples(all[i]->shard_us);
    std::printf("\"merge_us\":%.2f,", median(all[i]->merge_us));
    print_end(settings);
  }
}

}  // namespace isobit::nccl::bench
