// The GPU kernels of the backward pass from their PTX, run by the interpreter with the race checker on: bytes of the
// CPU backend.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ops/linear_logp/test/backward_case.h"
#include "ptx/emulation.h"

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

TEST(LinearLogpBackwardEmulated, PlainCall) { compare(random_case({70, 72, 500}, 1), {.kernel = "sm90"}); }

}  // namespace
}  // namespace isobit::linear_logp::test
