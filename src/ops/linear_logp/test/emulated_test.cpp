// The GPU kernels from their PTX, run by the interpreter under several schedules with the race checker on: bytes of the
// CPU backend, for both architectures' kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ops/linear_logp/test/frozen.h"
#include "ptx/runtime/emulation.h"

namespace isobit::linear_logp::test {
namespace {

constexpr unsigned kPlain = Outputs::kLogp | Outputs::kLse;
constexpr unsigned kWithEntropy = kPlain | Outputs::kEntropy | Outputs::kLogit;
constexpr unsigned kEverything = kWithEntropy | Outputs::kRank;
const std::string kFolder = ISOBIT_BINARY_DIR "/ptx/linear_logp";

// Moves the memory of a call onto the emulated device; outputs come back with fetch().
class Call {
 public:
  Call(ptx::EmulatedRuntime* device, const Problem& problem, const char* kernel)
      : device_(device), args_(problem.args()) {
    args_.kernel = kernel;
    upload(&args_.hidden, problem.hidden.data(), problem.hidden.size() * 2);
    upload(&args_.weight, problem.weight.data(), problem.weight.size() * 2);
    upload(&args_.target, problem.target.data(), problem.target.size() * 8);
    upload(&args_.bias, problem.bias.data(), problem.bias.size() * 4);
    upload(&args_.temperature, problem.temperature.data(), problem.temperature.size() * 4);
  }

  isobit_linear_logp_args& args() { return args_; }

  void attach(Outputs* outputs) {
    outputs->attach(&args_);
    for (isobit_tensor* view :
         {&args_.logp, &args_.lse, &args_.entropy, &args_.rank, &args_.target_logit, &args_.top_id, &args_.top_logp}) {
      if (view->dtype == ISOBIT_NONE) continue;
      const size_t bytes = static_cast<size_t>(view->shape[0] * (view->rank == 2 ? view->shape[1] : 1)) * 4;
      written_.push_back({view->data, bytes, buffers_.size()});
      buffers_.push_back(device_->allocate(bytes));
      place(view);
    }
  }

  void* allocate(size_t bytes) {
    buffers_.push_back(device_->allocate(bytes));
    return buffers_.back().data();
  }

  void take_workspace() {
    size_t minimum = 0;
    ASSERT_EQ(isobit_linear_logp_workspace(&args_, &minimum, nullptr), ISOBIT_OK) << isobit_last_error();
    args_.workspace = allocate(minimum);
    args_.workspace_bytes = minimum;
  }

  void fetch() const {
    for (const Written& w : written_) std::memcpy(w.host, buffers_[w.buffer].data(), w.bytes);
  }

 private:
  struct Written {
    void* host;
    size_t bytes;
    size_t buffer;
  };

  void upload(isobit_tensor* view, const void* data, size_t bytes) {
    if (view->dtype == ISOBIT_NONE) return;
    buffers_.push_back(device_->upload(data, bytes));
    place(view);
  }
  void place(isobit_tensor* view) const {
    view->data = buffers_.back().data();
    view->device_type = ISOBIT_CUDA;
  }

  ptx::EmulatedRuntime* device_;
  isobit_linear_logp_args args_;
  std::vector<ptx::DeviceBuffer> buffers_;
  std::vector<Written> written_;
};

void expect_clean(const ptx::EmulatedRuntime& device, const std::string& what) {
  EXPECT_TRUE(device.report().ok()) << what << "\n" << device.report().text();
}

void compare(const Problem& problem, unsigned wanted, std::initializer_list<const char*> kernels = {"sm90", "sm80"}) {
  const Outputs expected = run(problem, wanted);
  ptx::for_each_schedule(
      kFolder, {.multiprocessors = 3}, [&](ptx::EmulatedRuntime& device, const ptx::ScheduleCase& c) {
        for (const char* kernel : kernels) {
          const std::string what = std::string(kernel) + ", " + c.name;
          Call call(&device, problem, kernel);
          Outputs found(problem, wanted);
          call.attach(&found);
          call.take_workspace();
          ASSERT_EQ(isobit_linear_logp(&call.args(), nullptr), ISOBIT_OK) << what << isobit_last_error();
          call.fetch();
          expect_clean(device, what);
          for (int64_t row = 0; row < expected.rows; ++row) {
            ASSERT_EQ(expected.row_bytes(row), found.row_bytes(row))
                << what << ", row " << row << ": logp " << expected.logp_at(row) << " / " << found.logp_at(row);
          }
        }
      });
}

Problem with_options(const Shape& shape, uint64_t seed) {
  Problem problem = random_problem(shape, seed, 6.0f);
  for (int64_t v = 0; v < shape.vocab; ++v) problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
  for (int64_t n = 0; n < shape.rows; ++n) problem.temperature.push_back(0.5f + 0.1f * static_cast<float>(n % 11));
  problem.softcap = 8.0f;
  return problem;
}

TEST(LinearLogpEmulated, FewRows) {
  compare(random_problem({3, 136, 700}, 1), kPlain);
  compare(random_problem({9, 64, 129}, 2), kWithEntropy);
}

TEST(LinearLogpEmulated, ManyRows) {
  compare(random_problem({70, 136, 1100}, 3), kPlain);
  compare(random_problem({130, 72, 450}, 4), kWithEntropy);
  compare(random_problem({65, 64, 256}, 13), kWithEntropy);  // the last tile is one whole unit
}

TEST(LinearLogpEmulated, Fp16AndAllTokenTiles) {
  for (const int64_t rows : {8, 16, 32, 64}) {
    compare(random_problem({rows, 64, 300}, 5, 4.0f, ISOBIT_FP16), kWithEntropy, {"sm90"});
  }
  compare(random_problem({66, 64, 300}, 6, 4.0f, ISOBIT_FP16), kWithEntropy);
}

TEST(LinearLogpEmulated, OddWidth) { compare(random_problem({5, 33, 200}, 7), kWithEntropy, {"sm80"}); }

// One run under the first schedule.
Outputs run_emulated(const Problem& problem, unsigned wanted, const char* kernel) {
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3});
  const ScopedRuntime scope(&device);
  Call call(&device, problem, kernel);
  Outputs found(problem, wanted);
  call.attach(&found);
  call.take_workspace();
  EXPECT_EQ(isobit_linear_logp(&call.args(), nullptr), ISOBIT_OK) << isobit_last_error();
  call.fetch();
  expect_clean(device, kernel);
  return found;
}

// More ids than the top list has threads, so that some own two; equal logits; rows that list nothing.
TEST(LinearLogpEmulated, TopLists) {
  Problem problem = random_problem({4, 16, 1151}, 14);
  problem.top = 4;
  for (int64_t v = 600; v < 1151; v += 3) {
    for (int64_t k = 0; k < 16; ++k) problem.set_weight(v, k, problem.weight_at(v - 600, k));
  }
  problem.target[0] = -100;
  problem.target[1] = 1151;
  problem.set_hidden(2, 3, NAN);
  compare(problem, Outputs::kAll, {"sm90"});
  Problem many = with_options({65, 16, 70, 2}, 15);
  many.top = 2;
  const std::string expected = run(many).bytes();
  for (const char* kernel : {"sm90", "sm80"}) EXPECT_EQ(run_emulated(many, Outputs::kAll, kernel).bytes(), expected);
}

TEST(LinearLogpEmulated, FrozenBytes) {
  for (const FrozenCase& c : frozen_cases()) {
    if (c.shape.vocab > 10000) continue;  // minutes in the interpreter
    const Problem problem = frozen_problem(c);
    for (const char* kernel : {"sm90", "sm80"}) {
      EXPECT_EQ(hash_words(run_emulated(problem, kFrozenOutputs, kernel).bytes()), c.outputs) << c.name << kernel;
    }
  }
}

TEST(LinearLogpEmulated, Options) {
  compare(with_options({6, 64, 300, 2}, 8), kEverything);
  compare(with_options({67, 64, 300, 2}, 9), kEverything);
  // Temperatures alone: most rows share a divisor, some warps meet one that cannot.
  Problem tempered = random_problem({70, 64, 450}, 16);
  for (int64_t n = 0; n < 70; ++n) tempered.temperature.push_back(0.5f + 0.1f * static_cast<float>(n % 11));
  tempered.temperature[3] = 1.0f;
  tempered.temperature[20] = 0x1p-40f;
  tempered.temperature[40] = NAN;
  for (int64_t k = 0; k < 64; ++k) tempered.set_hidden(50, k, 0.0f);
  compare(tempered, kWithEntropy);
}

TEST(LinearLogpEmulated, SpecialRows) {
  for (const int64_t rows : {8, 66}) {
    Problem problem = random_problem({rows, 64, 330}, 10);
    problem.target[0] = -100;
    problem.target[1] = 330;
    problem.set_hidden(2, 3, NAN);
    problem.set_hidden(3, 3, 1e6f);
    problem.set_hidden(4, 0, INFINITY);
    problem.set_weight(200, 7, -INFINITY);
    compare(problem, kWithEntropy);
  }
}

// Long enough for blocks to keep pace with each other.
TEST(LinearLogpEmulated, Paced) {
  const Problem problem = random_problem({66, 4096, 3264}, 12);
  const Outputs expected = run(problem, kPlain);
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 2, .machine = {.schedule = ptx::Schedule::kRandom}});
  const ScopedRuntime scope(&device);
  Call call(&device, problem, "sm90");
  Outputs found(problem, kPlain);
  call.attach(&found);
  call.take_workspace();
  ASSERT_EQ(isobit_linear_logp(&call.args(), nullptr), ISOBIT_OK) << isobit_last_error();
  call.fetch();
  expect_clean(device, "paced");
  EXPECT_EQ(expected.bytes(), found.bytes());
}

// Shards with odd borders, merged.
TEST(LinearLogpEmulated, Shards) {
  for (const int64_t rows : {3, 66}) {
    const Problem problem = with_options({rows, 64, 600, 2}, 11);
    const Outputs expected = run(problem, kEverything);
    const Outputs logits = run(problem, Outputs::kLogit);
    for (const char* kernel : {"sm90", "sm80"}) {
      ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3});
      const ScopedRuntime scope(&device);
      Call call(&device, problem, kernel);
      Outputs found(problem, kEverything);
      call.attach(&found);
      const ptx::DeviceBuffer all_logits = device.upload(logits.target_logit.data(), logits.target_logit.bytes());
      std::vector<isobit_linear_logp_state> states;
      const isobit_linear_logp_args whole = call.args();
      const int64_t borders[] = {0, 1, 70, 192, 325, 326, 600};
      for (size_t i = 0; i + 1 < std::size(borders); ++i) {
        call.args() = whole;
        call.args().weight.data = static_cast<uint16_t*>(whole.weight.data) + borders[i] * problem.weight_stride;
        call.args().weight.shape[0] = borders[i + 1] - borders[i];
        call.args().bias.data = static_cast<float*>(whole.bias.data) + borders[i];
        call.args().bias.shape[0] = borders[i + 1] - borders[i];
        call.args().first_id = borders[i];
        call.args().vocab_size = problem.shape.vocab;
        call.args().target_logit.data = all_logits.data();
        size_t bytes = 0;
        ASSERT_EQ(isobit_linear_logp_state_bytes(&call.args(), &bytes), ISOBIT_OK) << isobit_last_error();
        void* const state = call.allocate(bytes);
        call.take_workspace();
        ASSERT_EQ(isobit_linear_logp_shard(&call.args(), state, nullptr), ISOBIT_OK) << isobit_last_error();
        states.push_back({borders[i], borders[i + 1] - borders[i], state});
      }
      call.args() = whole;
      call.args().hidden = {};
      call.args().weight = {};
      call.args().bias = {};
      call.args().vocab_size = problem.shape.vocab;
      ASSERT_EQ(isobit_linear_logp_merge(&call.args(), states.data(), static_cast<int32_t>(states.size()), nullptr),
                ISOBIT_OK)
          << isobit_last_error();
      call.fetch();
      expect_clean(device, kernel);
      for (int64_t row = 0; row < rows; ++row) ASSERT_EQ(expected.row_bytes(row), found.row_bytes(row)) << row;
    }
  }
}

// More shards than the merge plans at a time, their states from the CPU backend.
TEST(LinearLogpEmulated, ManyShardsMerged) {
  const Problem problem = with_options({70, 8, 60000, 1}, 12);
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3});
  const ScopedRuntime scope(&device);
  Call call(&device, problem, "sm90");
  Outputs found(problem, kWithEntropy);
  std::vector<ptx::DeviceBuffer> on_device;
  std::vector<isobit_linear_logp_state> states;
  for (int64_t first = 0; first < 60000; first += 469) {
    isobit_linear_logp_args args = shard_args(problem, first, std::min<int64_t>(first + 469, 60000));
    found.attach(&args);
    size_t bytes = 0;
    ASSERT_EQ(isobit_linear_logp_state_bytes(&args, &bytes), ISOBIT_OK) << isobit_last_error();
    ASSERT_EQ(isobit_linear_logp_workspace(&args, &args.workspace_bytes, nullptr), ISOBIT_OK) << isobit_last_error();
    Guarded workspace(args.workspace_bytes);
    args.workspace = workspace.data();
    Guarded state(bytes);
    ASSERT_EQ(isobit_linear_logp_shard(&args, state.data(), nullptr), ISOBIT_OK) << isobit_last_error();
    on_device.push_back(device.upload(state.data(), bytes));
    states.push_back({first, args.weight.shape[0], on_device.back().data()});
  }
  call.attach(&found);
  call.args().hidden = call.args().weight = call.args().bias = {};
  call.args().vocab_size = problem.shape.vocab;
  ASSERT_EQ(isobit_linear_logp_merge(&call.args(), states.data(), 128, nullptr), ISOBIT_OK) << isobit_last_error();
  call.fetch();
  expect_clean(device, "many shards");
  EXPECT_EQ(run(problem, kWithEntropy).bytes(), found.bytes());
}

}  // namespace
}  // namespace isobit::linear_logp::test
