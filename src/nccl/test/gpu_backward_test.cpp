// A training step on two GPUs over NCCL: the bytes of one GPU, also from captured graphs.
#include "nccl/test/gpu_fixture.h"
#include "ops/linear_logp/test/gpu_place.h"

namespace isobit::nccl::test {
namespace {

using linear_logp::test::BackwardBytes;
using linear_logp::test::BackwardCall;
using linear_logp::test::BackwardCase;
using linear_logp::test::Gpu;
using BackwardArgs = isobit_linear_logp_backward_args;

constexpr int32_t kPatience = 20000;

BackwardCase make_case(const linear_logp::test::Shape& shape) {
  BackwardCase c = linear_logp::test::random_case(shape, 91, 6.0f);
  c.d_entropy = c.d_lse;
  c.problem.softcap = 20.0f;
  for (int64_t v = 0; v < shape.vocab; ++v) c.problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
  for (int64_t n = 0; n < shape.rows; ++n) c.problem.temperature.push_back(0.5f + 0.1f * static_cast<float>(n % 11));
  c.bias_dtype = ISOBIT_FP32;
  c.forward_outputs = true;
  return c;
}

// The arguments of the call that saves, and of the one that reads what it saved.
void split(const BackwardArgs& both, BackwardArgs* save, BackwardArgs* backward) {
  *save = *backward = both;
  backward->forward.logp = backward->forward.lse = backward->forward.entropy = {};
}

BackwardBytes one_gpu(const BackwardCase& c) {
  Gpu gpu;
  return linear_logp::test::run_backward(c, &gpu, {.saves = true, .subtract_p = 1});
}

// One rank's share of the ids on its GPU. Its arrays of weight, d_weight and d_bias are whole; it is given its rows.
class Rank {
 public:
  Rank(const BackwardCase& c, int64_t first, int64_t last, int rank)
      : first_(first), last_(last), vocab_(c.problem.shape.vocab), call_(c, &gpu_, {.saves = true, .subtract_p = 1}) {
    BackwardArgs args = call_.args;
    set_device(&args, rank);
    args.saved = call_.saved();
    args.forward.first_id = first;
    for (isobit_tensor* tensor : {&args.forward.weight, &args.forward.bias, &args.d_weight, &args.d_bias}) {
      if (tensor->dtype == ISOBIT_NONE) continue;
      const int64_t element = tensor->dtype == ISOBIT_FP32 ? 4 : 2;
      tensor->data = static_cast<char*>(tensor->data) + first * tensor->stride[0] * element;
      tensor->shape[0] = last - first;
    }
    split(args, &save_, &backward_);
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  }
  ~Rank() {
    isobit_tp_destroy(tp_);
    cudaStreamDestroy(stream_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  Status create(void* communicator) {
    return passed_on_tp(isobit_tp_create_training(communicator, &backward_, kPatience, &tp_));
  }
  Status take_workspace() {
    size_t bytes = 0;
    if (Status s = passed_on_tp(isobit_tp_backward_workspace(tp_, &backward_, nullptr, &bytes)); !s.ok()) return s;
    for (BackwardArgs* args : {&save_, &backward_}) args->forward.workspace_bytes = bytes;
    save_.forward.workspace = backward_.forward.workspace = gpu_.room(bytes);
    cudaDeviceSynchronize();
    return Status();
  }
  Status step() {
    if (Status s = passed_on_tp(isobit_tp_linear_logp_save(tp_, &save_, stream_)); !s.ok()) return s;
    return passed_on_tp(isobit_tp_linear_logp_backward(tp_, &backward_, stream_));
  }
  Status capture() {
    return graph_.capture(stream_, [this] { return step(); });
  }
  Status replay() const { return graph_.replay(stream_); }
  void poison() const {
    const isobit_tensor& out = backward_.d_hidden;
    cudaMemset(out.data, 0xA5, static_cast<size_t>(out.shape[0] * out.shape[1]) * 2);
    cudaDeviceSynchronize();
  }
  // What the rank wrote, with its own rows alone of d_weight and d_bias.
  BackwardBytes bytes() const {
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    return own_rows(call_.fetch());
  }
  BackwardBytes own_rows(BackwardBytes all) const {
    for (std::string* array : {&all.d_weight, &all.d_bias}) {
      const size_t row = array->size() / static_cast<size_t>(vocab_);
      *array = array->substr(static_cast<size_t>(first_) * row, static_cast<size_t>(last_ - first_) * row);
    }
    return all;
  }

 private:
  int64_t first_, last_, vocab_;
  Gpu gpu_;
  BackwardCall call_;
  BackwardArgs save_{}, backward_{};
  isobit_tp* tp_ = nullptr;
  cudaStream_t stream_ = nullptr;
  CapturedCall graph_;
};

class NcclGpuBackward : public TwoGpus {
 protected:
  void make_ranks(const BackwardCase& c, int64_t border) {
    on_all([&](int rank) {
      ranks_[rank] =
          std::make_unique<Rank>(c, rank == 0 ? 0 : border, rank == 0 ? border : c.problem.shape.vocab, rank);
      return Status();
    });
    on_all([&](int rank) { return ranks_[rank]->create(world_->communicator(rank)); });
    on_all([&](int rank) { return ranks_[rank]->take_workspace(); });
  }
  void expect_bytes(const BackwardBytes& one) {
    on_all([&](int rank) {
      const BackwardBytes found = ranks_[rank]->bytes();
      const BackwardBytes expected = ranks_[rank]->own_rows(one);
      EXPECT_TRUE(found.logp == expected.logp && found.lse == expected.lse && found.entropy == expected.entropy);
      EXPECT_TRUE(found.d_hidden == expected.d_hidden) << "rank " << rank;
      EXPECT_TRUE(found.d_weight == expected.d_weight) << "rank " << rank;
      EXPECT_TRUE(found.d_bias == expected.d_bias) << "rank " << rank;
      return Status();
    });
  }

  std::unique_ptr<Rank> ranks_[kRanks];
};

TEST_F(NcclGpuBackward, BytesOfOneGpu) {
  const BackwardCase c = make_case({203, 136, 6000, 2});  // segments of 375 ids
  const BackwardBytes one = one_gpu(c);
  for (const int64_t border : {3000, 375, 375 * 13, 0, 6000}) {
    SCOPED_TRACE(testing::Message() << "border " << border);
    make_ranks(c, border);
    for (int repetition = 0; repetition < 2; ++repetition) {
      on_all([&](int rank) {
        ranks_[rank]->poison();
        return ranks_[rank]->step();
      });
      expect_bytes(one);
    }
  }
}

TEST_F(NcclGpuBackward, AnyBorderWithoutTheGradientOfHidden) {
  BackwardCase c = make_case({70, 64, 3001});
  c.hidden_dtype = ISOBIT_NONE;
  const BackwardBytes one = one_gpu(c);
  make_ranks(c, 1001);
  on_all([&](int rank) { return ranks_[rank]->step(); });
  expect_bytes(one);
}

TEST_F(NcclGpuBackward, ACapturedGraph) {
  const BackwardCase c = make_case({130, 128, 4096});
  const BackwardBytes one = one_gpu(c);
  make_ranks(c, 2048);
  on_all([&](int rank) { return ranks_[rank]->capture(); });
  for (int replay = 0; replay < 3; ++replay) {
    on_all([&](int rank) {
      ranks_[rank]->poison();
      return ranks_[rank]->replay();
    });
    expect_bytes(one);
  }
}

}  // namespace
}  // namespace isobit::nccl::test
