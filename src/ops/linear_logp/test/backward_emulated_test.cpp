// The GPU kernels of the backward pass from their PTX, run by the interpreter with the race checker on: bytes of the
// CPU backend.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ops/linear_logp/test/backward_frozen.h"
#include "ops/linear_logp/test/backward_shards.h"
#include "ptx/runtime/emulation.h"

namespace isobit::linear_logp::test {
namespace {

const std::string kFolder = ISOBIT_BINARY_DIR "/ptx/linear_logp";

class EmulatedPlace final : public Place {
 public:
  explicit EmulatedPlace(ptx::EmulatedRuntime* device) : device_(device) {}
  int device_type() const override { return ISOBIT_CUDA; }
  void* put(const void* host, size_t bytes) override {
    buffers_.push_back(device_->upload(host, bytes));
    return buffers_.back().data();
  }
  void* room(size_t bytes) override {
    buffers_.push_back(device_->allocate(bytes));
    return buffers_.back().data();
  }
  void fetch(void* host, const void* place, size_t bytes) override { std::memcpy(host, place, bytes); }

 private:
  ptx::EmulatedRuntime* device_;
  std::vector<ptx::DeviceBuffer> buffers_;
};

void expect_equal(const BackwardBytes& expected, const BackwardBytes& found, const std::string& what) {
  EXPECT_EQ(expected.logp == found.logp && expected.lse == found.lse && expected.entropy == found.entropy, true)
      << what;
  const auto compare = [&](const char* name, const std::string& a, const std::string& b) {
    ASSERT_EQ(a.size(), b.size()) << what;
    size_t differing = 0;
    size_t first = a.size();
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      if (differing++ == 0) first = i;
    }
    EXPECT_EQ(differing, 0u) << what << ": " << name << " differs from byte " << first << " of " << a.size();
  };
  compare("d_hidden", expected.d_hidden, found.d_hidden);
  compare("d_weight", expected.d_weight, found.d_weight);
  compare("d_bias", expected.d_bias, found.d_bias);
}

void compare(const BackwardCase& c, const BackwardOptions& options, ptx::Schedule schedule = ptx::Schedule::kRandom,
             bool check_races = true) {
  const BackwardBytes expected = run_backward_on_cpu(c, options);
  ptx::EmulatedRuntime device(kFolder,
                              {.multiprocessors = 3, .machine = {.schedule = schedule, .check_races = check_races}});
  const ScopedRuntime scope(&device);
  EmulatedPlace place(&device);
  const BackwardBytes found = run_backward(c, &place, options);
  EXPECT_TRUE(device.report().ok()) << device.report().text();
  expect_equal(expected, found,
               std::string(options.kernel) + ", N " + std::to_string(c.problem.shape.rows) + ", H " +
                   std::to_string(c.problem.shape.width) + (options.saves ? ", saved" : ""));
}

void expect_shards(const BackwardCase& c, const std::vector<int64_t>& cuts, const char* kernel) {
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3, .machine = {.check_races = true}});
  const ScopedRuntime scope(&device);
  EmulatedPlace place(&device);
  const ShardedBytes found = run_backward_shards(c, cuts, &place, kernel);
  EXPECT_TRUE(device.report().ok()) << device.report().text();
  const ShardedBytes expected = run_backward_shards_on_cpu(c, cuts);
  EXPECT_TRUE(expected.saved == found.saved);
  EXPECT_TRUE(expected.parts == found.parts);
  expect_equal(expected.merged, found.merged, "shards");
  expect_equal(run_backward_on_cpu(c, {.subtract_p = 1}), found.merged, "one call");
}

// By kernel.
class LinearLogpBackwardEmulated : public testing::TestWithParam<std::string> {
 protected:
  const std::string name = GetParam();
  const char* const kernel = name.c_str();
  const BackwardOptions usual = {.kernel = kernel};
  const BackwardOptions subtracting_p = {.kernel = kernel, .subtract_p = 1};
};
INSTANTIATE_TEST_SUITE_P(Kernels, LinearLogpBackwardEmulated, testing::Values(std::string("sm90"), std::string("sm80")),
                         [](const auto& instance) { return instance.param; });

TEST_P(LinearLogpBackwardEmulated, FrozenBytes) {
  for (const FrozenBackwardCase& frozen : frozen_backward_cases().first(3)) {
    ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3});
    const ScopedRuntime scope(&device);
    EmulatedPlace place(&device);
    EXPECT_EQ(hash_gradients(run_backward(frozen_backward_case(frozen), &place, usual)), frozen.whole) << frozen.name;
  }
}

// One of everything: segments that are no multiple of 8, several tiles each way, rows of every kind.
TEST_P(LinearLogpBackwardEmulated, PlainCall) {
  for (const ptx::Schedule schedule : {ptx::Schedule::kLazy, ptx::Schedule::kRandom}) {
    compare(random_case({130, 72, 400}, 1), usual, schedule);
  }
  compare(random_case({9, 200, 700}, 2), usual);
  compare(random_case({20, 64, 300}, 11), subtracting_p);
}

// Targets far above everything else: 1 - p is the others' share. Few rows and many, one target and several.
TEST_P(LinearLogpBackwardEmulated, ConfidentRows) {
  for (const Shape& shape : {Shape{20, 64, 450}, Shape{66, 64, 450, 2}}) {
    BackwardCase c = random_case(shape, 12);
    for (int64_t n = 0; n < shape.rows; ++n) {
      const int64_t id = c.problem.target[static_cast<size_t>(n * shape.targets)];
      if (id < 0 || id >= shape.vocab || n % 3 != 0) continue;
      for (int64_t k = 0; k < 64; ++k) c.problem.set_weight(id, k, 0.4f * c.problem.hidden_at(n, k));
    }
    compare(c, usual);
    for (int64_t v = 0; v < shape.vocab; ++v) c.problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
    compare(c, {.kernel = kernel, .saves = true});
  }
}

TEST_P(LinearLogpBackwardEmulated, Options) {
  BackwardCase c = random_case({37, 64, 403, 3}, 3, 6.0f);
  c.d_entropy = c.d_lse;
  for (int64_t v = 0; v < 403; ++v) c.problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
  for (int64_t n = 0; n < 37; ++n) c.problem.temperature.push_back(n == 5 ? 0.0f : 0.5f + 0.1f * static_cast<float>(n));
  c.problem.softcap = 8.0f;
  c.bias_dtype = ISOBIT_FP32;
  c.forward_outputs = true;
  c.padding = 3;
  compare(c, usual);
  c.accumulate = true;
  c.hidden_dtype = ISOBIT_FP32;
  compare(c, {.kernel = kernel, .minimum = true, .saves = true});
}

TEST_P(LinearLogpBackwardEmulated, EntropyInPlainTiles) {
  BackwardCase c = random_case({130, 64, 3200}, 4);
  c.d_entropy = c.d_lse;
  c.weight_dtype = ISOBIT_BF16;
  compare(c, usual);
}

// Rows of d_weight that start anywhere, widths that are odd, gradients that are not wanted.
TEST_P(LinearLogpBackwardEmulated, Layouts) {
  BackwardCase c = random_case({20, 40, 300}, 5);
  c.weight_margin = 1;
  compare(c, usual);
  c.weight_dtype = ISOBIT_BF16;
  c.bias_dtype = ISOBIT_NONE;
  c.hidden_dtype = ISOBIT_NONE;
  compare(c, usual);
  c.weight_dtype = ISOBIT_NONE;
  c.hidden_dtype = ISOBIT_FP32;
  compare(c, usual);
}

TEST_P(LinearLogpBackwardEmulated, SpecialRows) {
  BackwardCase c = random_case({12, 64, 330}, 6);
  c.problem.set_hidden(3, 3, NAN);   // an ignored row
  c.problem.set_hidden(11, 3, NAN);  // a target outside the vocabulary
  compare(c, usual);
  c.problem.set_hidden(5, 3, INFINITY);
  compare(c, usual);
  c.problem.set_hidden(5, 3, 1e6f);
  compare(c, usual);
}

TEST_P(LinearLogpBackwardEmulated, NoValidRow) {
  BackwardCase c = random_case({6, 64, 300}, 7);
  for (int64_t& target : c.problem.target) target = -100;
  compare(c, usual);
  c.accumulate = true;
  compare(c, usual);
  BackwardCase none = random_case({0, 64, 300}, 8);
  compare(none, usual);
  none.accumulate = true;
  compare(none, usual);
}

// A record holds q whether or not the call that saves it wants the entropy.
TEST_P(LinearLogpBackwardEmulated, EntropyOfASavedPass) {
  BackwardCase c = random_case({12, 16, 60}, 20);
  c.d_entropy = c.d_lse;
  compare(c, {.kernel = kernel, .saves = true});
}

// What the copy engine of SM90 cannot take: rows that start anywhere, from plain loads where they are not aligned.
TEST(LinearLogpBackwardEmulatedSm80, OddWidthsAndAddresses) {
  const BackwardOptions options = {.kernel = "sm80"};
  BackwardCase odd = random_case({40, 33, 300}, 21);
  odd.d_entropy = odd.d_lse;
  for (int64_t v = 0; v < 300; ++v) odd.problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
  odd.bias_dtype = ISOBIT_FP32;
  compare(odd, options);
  odd.accumulate = true;
  compare(odd, {.kernel = "sm80", .minimum = true, .saves = true});
  compare(random_case({9, 1153, 40}, 22), options);
  BackwardCase misaligned = random_case({20, 40, 200}, 23);
  misaligned.misaligned = true;
  compare(misaligned, options);
  BackwardCase aligned_rows = random_case({20, 40, 200}, 24);  // but H is no multiple of 8
  aligned_rows.problem.shape.width = 37;
  compare(aligned_rows, options);
}

// States, records, parts, rows of d_weight and the merged d_hidden are the CPU's, and the merged ones those of one
// call: nodes of several sizes, segments without ids, a shard that is one segment. Rows in fours: no padding in the
// record.
TEST_P(LinearLogpBackwardEmulated, Shards) {
  BackwardCase c = random_case({72, 40, 400}, 13);
  c.forward_outputs = true;
  c.hidden_dtype = ISOBIT_FP32;
  for (int64_t v = 0; v < 400; ++v) c.problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
  c.bias_dtype = ISOBIT_BF16;
  for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{0, 200, 400}, {0, 25, 175, 400}}) {
    expect_shards(c, cuts, kernel);
  }
  BackwardCase odd = random_case({12, 16, 17, 2}, 14);
  odd.forward_outputs = true;
  odd.d_entropy = odd.d_lse;
  expect_shards(odd, {0, 4, 10, 17}, kernel);
}

// More than 8,192 ids in a segment, and more than 8,192 valid rows: sums of pieces.
TEST_P(LinearLogpBackwardEmulated, PiecesOfIds) {
  BackwardCase c = random_case({2, 16, 131072 + 1000}, 9);
  c.weight_dtype = ISOBIT_NONE;
  compare(c, subtracting_p, ptx::Schedule::kEager, false);  // barriers of one piece are those of the other tests
}

TEST_P(LinearLogpBackwardEmulated, PiecesOfRows) {
  BackwardCase c = random_case({8300, 8, 17}, 10);
  for (int64_t n = 0; n < 8300; ++n) c.problem.target[static_cast<size_t>(n)] = n == 77 ? -100 : n % 17;
  c.accumulate = true;
  c.hidden_dtype = ISOBIT_NONE;
  compare(c, subtracting_p, ptx::Schedule::kEager);
}

}  // namespace
}  // namespace isobit::linear_logp::test
