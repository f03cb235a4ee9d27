// Two GPUs over NCCL: the bytes of one GPU, captured graphs, and what happens when ranks disagree or do not come.
#include <chrono>

#include "nccl/test/gpu_fixture.h"
#include "ops/linear_logp/test/gpu_problem.h"

namespace isobit::nccl::test {
namespace {

using linear_logp::test::DeviceMemory;
using linear_logp::test::GpuOutputs;
using linear_logp::test::GpuProblem;
using linear_logp::test::Outputs;
using linear_logp::test::Problem;
using linear_logp::test::random_problem;

constexpr unsigned kWanted = Outputs::kLogp | Outputs::kLse | Outputs::kEntropy | Outputs::kLogit;
using Change = std::function<void(isobit_linear_logp_args*)>;

// One rank's operands, outputs and agreement on its GPU.
class Rank {
 public:
  Rank(const Problem& problem, int64_t first, int64_t last, int rank)
      : operands_(problem), outputs_(problem, kWanted), args(operands_.shard_args(first, last)) {
    outputs_.attach(&args);
    set_device(&args, rank);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  }
  ~Rank() {
    isobit_tp_destroy(tp);
    cudaStreamDestroy(stream);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  Status create(void* communicator, int32_t timeout_ms = 20000) {
    return passed_on_tp(isobit_tp_create(communicator, &args, timeout_ms, &tp));
  }
  Status take_workspace() {
    size_t bytes = 0;
    if (Status s = passed_on_tp(isobit_tp_workspace(tp, &args, nullptr, &bytes)); !s.ok()) return s;
    workspace_ = DeviceMemory(bytes);
    args.workspace = workspace_.data();
    args.workspace_bytes = bytes;
    return Status();
  }
  Status call() { return passed_on_tp(isobit_tp_linear_logp(tp, &args, stream)); }

  Status capture() {
    return graph_.capture(stream, [this] { return call(); });
  }
  Status replay() const { return graph_.replay(stream); }
  void poison() const {
    outputs_.poison();
    cudaDeviceSynchronize();  // the stream does not wait for the default one
  }
  std::string bytes() const {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_TRUE(workspace_.guards_intact());
    return outputs_.fetch().bytes();
  }

 private:
  GpuProblem operands_;
  GpuOutputs outputs_;
  DeviceMemory workspace_;
  CapturedCall graph_;

 public:
  isobit_linear_logp_args args;
  isobit_tp* tp = nullptr;
  cudaStream_t stream = nullptr;
};

class NcclGpu : public TwoGpus {
 protected:
  void make_ranks(const Problem& problem, const std::vector<int64_t>& borders) {
    on_all([&](int rank) {
      const auto i = static_cast<size_t>(rank);
      ranks_[rank] = std::make_unique<Rank>(problem, borders[i], borders[i + 1], rank);
      return Status();
    });
  }
  void agree() {
    on_all([&](int rank) { return ranks_[rank]->create(world_->communicator(rank)); });
    on_all([&](int rank) { return ranks_[rank]->take_workspace(); });
  }
  void expect_bytes(const std::string& expected, const std::string& what) {
    on_all([&](int rank) {
      EXPECT_TRUE(ranks_[rank]->bytes() == expected) << what << " on rank " << rank;
      return Status();
    });
  }
  // Two calls each.
  void expect_one_gpu(const Problem& problem, const std::vector<int64_t>& borders) {
    const std::string one = linear_logp::test::run_gpu(problem, kWanted).bytes();
    for (const int64_t border : borders) {
      make_ranks(problem, {0, border, problem.shape.vocab});
      agree();
      for (int call = 0; call < 2; ++call) {
        on_all([&](int rank) {
          ranks_[rank]->poison();
          return ranks_[rank]->call();
        });
        expect_bytes(one, "border " + std::to_string(border) + ", call " + std::to_string(call));
      }
    }
  }
  std::vector<Answer> create_with(const Change& change) {
    make_ranks(small_, {0, 90, 200});
    change(&ranks_[1]->args);
    return on_gpus(kRanks, [&](int rank) { return ranks_[rank]->create(world_->communicator(rank)); });
  }
  // Rank 0 alone calls for the agreement; the other does not come.
  void expect_time_out() {
    constexpr int32_t kPatience = 1500;
    isobit_tp* tp = nullptr;
    const auto start = std::chrono::steady_clock::now();
    const isobit_status status = isobit_tp_create(world_->communicator(0), &ranks_[0]->args, kPatience, &tp);
    const auto waited = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(status, ISOBIT_DEVICE_ERROR);
    EXPECT_STREQ(isobit_tp_last_error(),
                 "communicator: expected 2 ranks within 1500 ms, got no answer from all of them");
    EXPECT_EQ(tp, nullptr);
    EXPECT_GE(waited, std::chrono::milliseconds(kPatience));
    EXPECT_LT(waited, std::chrono::milliseconds(kPatience + 1500));
    world_->abort();
  }

  Problem small_ = random_problem({4, 16, 200, 2}, 71);
  std::unique_ptr<Rank> ranks_[kRanks];
};

Problem problem_with_options(const linear_logp::test::Shape& shape) {
  Problem p = random_problem(shape, 72, 6.0f);
  p.softcap = 25.0f;
  for (int64_t v = 0; v < shape.vocab; ++v) p.bias.push_back(static_cast<float>(v % 13) * 0.125f);
  for (int64_t n = 0; n < shape.rows; ++n) p.temperature.push_back(0.5f + static_cast<float>(n % 7) * 0.25f);
  p.target[0] = p.target[1] = p.target[2] = -100;
  p.target[4] = shape.vocab;
  return p;
}

TEST_F(NcclGpu, BytesOfOneGpuAtOddBorders) {
  const Problem problem = problem_with_options({67, 72, 50257, 2});
  expect_one_gpu(problem, {1, 20001, 25088, 25129, 50256, 0, 50257});
}

// Nodes above those that a round of the shard pass holds, and rounds that chain them.
TEST_F(NcclGpu, WideShards) {
  expect_one_gpu(problem_with_options({70, 8, 140001, 1}), {0, 65536, 70001, 140000});
  expect_one_gpu(problem_with_options({5, 8, 1200000, 1}), {524288, 524288 + 77, 1048576 + 1024, 1200000});
  expect_one_gpu(problem_with_options({1500, 8, 70001, 1}), {65536, 3333});
}

TEST_F(NcclGpu, ACapturedGraph) {
  const Problem problem = problem_with_options({130, 128, 3001, 1});
  const std::string one = linear_logp::test::run_gpu(problem, kWanted).bytes();
  make_ranks(problem, {0, 1001, 3001});
  agree();
  on_all([&](int rank) { return ranks_[rank]->capture(); });
  for (int replay = 0; replay < 3; ++replay) {
    on_all([&](int rank) {
      ranks_[rank]->poison();
      return ranks_[rank]->replay();
    });
    expect_bytes(one, "replay " + std::to_string(replay));
  }
}

TEST_F(NcclGpu, DisagreementsAreErrorsOnBothRanks) {
  const auto expect = [&](const std::string& message, const Change& change) {
    for (const Answer& answer : create_with(change)) {
      EXPECT_EQ(answer.status, ISOBIT_INVALID_ARGUMENT);
      EXPECT_EQ(answer.message, message);
    }
  };
  expect("rows N: expected the same on every rank, got 4 on rank 0 and 3 on rank 1", [](isobit_linear_logp_args* args) {
    for (isobit_tensor* t :
         {&args->hidden, &args->target, &args->logp, &args->lse, &args->entropy, &args->target_logit})
      t->shape[0] = 3;
  });
  const std::string ranges = "ranges of 2 ranks: states: expected shards that partition [0, V), got ";
  expect(ranges + "an overlap at id 89", [](isobit_linear_logp_args* args) { --args->first_id; });
  expect(ranges + "a gap at id 90", [](isobit_linear_logp_args* args) { ++args->first_id; });
  const auto answers = create_with([](isobit_linear_logp_args* args) { args->temperature_value = 0.0f; });
  EXPECT_EQ(answers[0].message, "rank 1: its own arguments were refused (invalid argument)");
  EXPECT_NE(answers[1].message.find("temperature_value"), std::string::npos) << answers[1].message;

  for (const Answer& answer : create_with([](isobit_linear_logp_args*) {}))  // and the communicator still serves
    EXPECT_EQ(answer.status, ISOBIT_OK) << answer.message;
}

TEST_F(NcclGpu, ARankThatDoesNotComeToTheFirstCollective) {
  make_ranks(small_, {0, 90, 200});
  expect_time_out();
}

TEST_F(NcclGpu, ARankThatDoesNotComeLater) {
  make_ranks(small_, {0, 90, 200});
  agree();
  expect_time_out();
}

}  // namespace
}  // namespace isobit::nccl::test
