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

void compare(const BackwardCase& c, const BackwardOptions& options, ptx::Schedule schedule = ptx::Schedule::kRandom) {
  const BackwardBytes expected = run_backward_on_cpu(c, options);
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3, .machine = {.schedule = schedule, .check_races = true}});
  const ScopedRuntime scope(&device);
  EmulatedPlace place(&device);
  const BackwardBytes found = run_backward(c, &place, options);
  EXPECT_TRUE(device.report().ok()) << device.report().text();
  expect_equal(expected, found, options.kernel);
}

void expect_shards(const BackwardCase& c, const std::vector<int64_t>& cuts) {
  ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3, .machine = {.check_races = true}});
  const ScopedRuntime scope(&device);
  EmulatedPlace place(&device);
  const ShardedBytes found = run_backward_shards(c, cuts, &place, "sm90");
  EXPECT_TRUE(device.report().ok()) << device.report().text();
  const ShardedBytes expected = run_backward_shards_on_cpu(c, cuts);
  EXPECT_TRUE(expected.saved == found.saved);
  EXPECT_TRUE(expected.parts == found.parts);
  expect_equal(expected.merged, found.merged, "shards");
  expect_equal(run_backward_on_cpu(c, {.subtract_p = 1}), found.merged, "one call");
}

constexpr BackwardOptions kSm90 = {.kernel = "sm90"};
constexpr BackwardOptions kSubtractP = {.kernel = "sm90", .subtract_p = 1};

TEST(LinearLogpBackwardEmulated, FrozenBytes) {
  for (const FrozenBackwardCase& frozen : frozen_backward_cases().first(3)) {
    ptx::EmulatedRuntime device(kFolder, {.multiprocessors = 3});
    const ScopedRuntime scope(&device);
    EmulatedPlace place(&device);
    EXPECT_EQ(hash_gradients(run_backward(frozen_backward_case(frozen), &place, kSm90)), frozen.whole) << frozen.name;
  }
}

// One of everything: segments that are no multiple of 8, several tiles each way, rows of every kind.
TEST(LinearLogpBackwardEmulated, PlainCall) {
  for (const ptx::Schedule schedule : {ptx::Schedule::kLazy, ptx::Schedule::kRandom}) {
    compare(random_case({130, 72, 400}, 1), kSm90, schedule);
  }
  compare(random_case({9, 200, 700}, 2), kSm90);
  compare(random_case({20, 64, 300}, 11), kSubtractP);
}

// Targets far above everything else: 1 - p is the others' share. Few rows and many, one target and several.
TEST(LinearLogpBackwardEmulated, ConfidentRows) {
  for (const Shape& shape : {Shape{20, 64, 450}, Shape{66, 64, 450, 2}}) {
    BackwardCase c = random_case(shape, 12);
    for (int64_t n = 0; n < shape.rows; ++n) {
      const int64_t id = c.problem.target[static_cast<size_t>(n * shape.targets)];
      if (id < 0 || id >= shape.vocab || n % 3 != 0) continue;
      for (int64_t k = 0; k < 64; ++k) c.problem.set_weight(id, k, 0.4f * c.problem.hidden_at(n, k));
    }
    compare(c, kSm90);
    for (int64_t v = 0; v < shape.vocab; ++v) c.problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
    compare(c, {.kernel = "sm90", .saves = true});
  }
}

TEST(LinearLogpBackwardEmulated, Options) {
  BackwardCase c = random_case({37, 64, 403, 3}, 3, 6.0f);
  c.d_entropy = c.d_lse;
  for (int64_t v = 0; v < 403; ++v) c.problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
  for (int64_t n = 0; n < 37; ++n) c.problem.temperature.push_back(n == 5 ? 0.0f : 0.5f + 0.1f * static_cast<float>(n));
  c.problem.softcap = 8.0f;
  c.bias_dtype = ISOBIT_FP32;
  c.forward_outputs = true;
  c.padding = 3;
  compare(c, kSm90);
  c.accumulate = true;
  c.hidden_dtype = ISOBIT_FP32;
  compare(c, {.kernel = "sm90", .minimum = true, .saves = true});
}

TEST(LinearLogpBackwardEmulated, EntropyInPlainTiles) {
  BackwardCase c = random_case({130, 64, 3200}, 4);
  c.d_entropy = c.d_lse;
  c.weight_dtype = ISOBIT_BF16;
  compare(c, kSm90);
}

// Rows of d_weight that start anywhere, widths that are odd, gradients that are not wanted.
TEST(LinearLogpBackwardEmulated, Layouts) {
  BackwardCase c = random_case({20, 40, 300}, 5);
  c.weight_margin = 1;
  compare(c, kSm90);
  c.weight_dtype = ISOBIT_BF16;
  c.bias_dtype = ISOBIT_NONE;
  c.hidden_dtype = ISOBIT_NONE;
  compare(c, kSm90);
  c.weight_dtype = ISOBIT_NONE;
  c.hidden_dtype = ISOBIT_FP32;
  compare(c, kSm90);
}

TEST(LinearLogpBackwardEmulated, SpecialRows) {
  BackwardCase c = random_case({12, 64, 330}, 6);
  c.problem.set_hidden(3, 3, NAN);   // an ignored row
  c.problem.set_hidden(11, 3, NAN);  // a target outside the vocabulary
  compare(c, kSm90);
  c.problem.set_hidden(5, 3, INFINITY);
  compare(c, kSm90);
  c.problem.set_hidden(5, 3, 1e6f);
  compare(c, kSm90);
}

TEST(LinearLogpBackwardEmulated, NoValidRow) {
  BackwardCase c = random_case({6, 64, 300}, 7);
  for (int64_t& target : c.problem.target) target = -100;
  compare(c, kSm90);
  c.accumulate = true;
  compare(c, kSm90);
  BackwardCase none = random_case({0, 64, 300}, 8);
  compare(none, kSm90);
  none.accumulate = true;
  compare(none, kSm90);
}

// States, records, parts, rows of d_weight and the merged d_hidden are the CPU's, and the merged ones those of one
// call: nodes of several sizes, segments without ids, a shard that is one segment. Rows in fours: no padding in the
// record.
TEST(LinearLogpBackwardEmulated, Shards) {
  BackwardCase c = random_case({72, 40, 400}, 13);
  c.forward_outputs = true;
  c.hidden_dtype = ISOBIT_FP32;
  for (int64_t v = 0; v < 400; ++v) c.problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
  c.bias_dtype = ISOBIT_BF16;
  for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{0, 200, 400}, {0, 25, 175, 400}}) {
    expect_shards(c, cuts);
  }
  BackwardCase odd = random_case({12, 16, 17, 2}, 14);
  odd.forward_outputs = true;
  odd.d_entropy = odd.d_lse;
  expect_shards(odd, {0, 4, 10, 17});
}

// More than 8,192 ids in a segment, and more than 8,192 valid rows: sums of pieces.
TEST(LinearLogpBackwardEmulated, PiecesOfIds) {
  BackwardCase c = random_case({2, 16, 131072 + 1000}, 9);
  c.weight_dtype = ISOBIT_NONE;
  compare(c, kSubtractP, ptx::Schedule::kEager);
}

TEST(LinearLogpBackwardEmulated, PiecesOfRows) {
  BackwardCase c = random_case({8300, 8, 17}, 10);
  for (int64_t n = 0; n < 8300; ++n) c.problem.target[static_cast<size_t>(n)] = n == 77 ? -100 : n % 17;
  c.accumulate = true;
  compare(c, kSubtractP, ptx::Schedule::kEager);
}

}  // namespace
}  // namespace isobit::linear_logp::test
