// The compiled kernels of every architecture, run on the CPU by the PTX interpreter: bytes of the CPU backend for every
// layout. For architectures that nobody had at hand this is the evidence that there is.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "ops/geglu/test/problem.h"
#include "ptx/runtime/emulation.h"

namespace isobit::geglu::test {
namespace {

const std::string kFolder = std::string(ISOBIT_BINARY_DIR) + "/ptx/geglu/cuda";
constexpr Device kDevice = {ISOBIT_CUDA, 0};

// Architectures of this build: launch.90.ptx and so on.
std::vector<int> architectures() {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".ptx") continue;
    found.push_back(std::stoi(entry.path().stem().extension().string().substr(1)));
  }
  return found;
}

struct Options {
  isobit_gelu gelu = ISOBIT_GELU_TANH;
  bool round_gelu = false;
};

void expect_same(ptx::EmulatedRuntime& emulated, isobit_dtype dtype, const Shape& shape, const Options& options,
                 const char* kernel) {
  Problem wanted(dtype, shape, Values::kPatterns);
  Problem got = wanted;
  const auto run = [&](auto on_cpu, auto on_device, auto call) {
    wanted.reset();
    auto cpu_args = on_cpu();
    cpu_args.round_gelu = options.round_gelu ? 1 : 0;
    ASSERT_EQ(call(&cpu_args), ISOBIT_OK) << isobit_last_error();
    got.reset();
    const ptx::DeviceBuffer buffer = emulated.upload(got.arena.data(), got.arena.size());
    auto args = on_device(buffer.data());
    args.round_gelu = cpu_args.round_gelu;
    args.kernel = kernel;
    ASSERT_EQ(call(&args), ISOBIT_OK) << isobit_last_error();
    EXPECT_EQ(emulated.report().text(), "");
    std::memcpy(got.arena.data(), buffer.data(), got.arena.size());
    EXPECT_TRUE(got.arena == wanted.arena)
        << dtype_name(dtype) << " " << shape.columns << " columns, " << kernel << ", inputs "
        << static_cast<int>(shape.inputs) << ", gradients " << static_cast<int>(shape.gradients) << ", misalignment "
        << shape.misalignment << (options.round_gelu ? ", rounded" : "") << "\nout "
        << first_difference(dtype, got.out(), wanted.out()) << "\nd_gate "
        << first_difference(dtype, got.d_gate(), wanted.d_gate()) << "\nd_up "
        << first_difference(dtype, got.d_up(), wanted.d_up());
  };
  run([&] { return wanted.forward(options.gelu); },
      [&](void* base) { return got.forward(base, kDevice, options.gelu); },
      [](const isobit_geglu_forward_args* args) { return isobit_geglu_forward(args, nullptr); });
  run([&] { return wanted.backward(options.gelu); },
      [&](void* base) { return got.backward(base, kDevice, options.gelu); },
      [](const isobit_geglu_backward_args* args) { return isobit_geglu_backward(args, nullptr); });
}

class GegluInterpreter : public testing::TestWithParam<int> {
 protected:
  void walk(isobit_dtype dtype, isobit_gelu gelu, int64_t columns) {
    ptx::EmulatedRuntime emulated(kFolder, {.capability = GetParam()});
    const ScopedRuntime scope(&emulated);
    constexpr Arrangement kAll[] = {Arrangement::kSeparate, Arrangement::kStacked, Arrangement::kInterleaved};
    int variant = 0;
    for (const Arrangement inputs : kAll) {
      for (const int64_t misalignment : {0, 1, 4}) {
        Shape shape = {.rows = 2, .columns = columns, .inputs = inputs, .gradients = kAll[variant % 3]};
        shape.swapped = variant % 2 == 1;
        shape.padding = variant % 4 == 3 ? 5 : 0;
        shape.misalignment = misalignment;
        shape.in_place = variant % 5 == 4;
        for (const char* kernel : {"row", "tile"}) {
          expect_same(emulated, dtype, shape, {gelu, variant % 3 == 2}, kernel);
        }
        ++variant;
      }
    }
    for (const CoupleCase& c : couple_cases(2, columns)) {
      expect_same(emulated, dtype, c.shape, {gelu, c.round_gelu}, "tile");
    }
    EXPECT_GT(emulated.launches(), 0u);
  }
};

TEST_P(GegluInterpreter, Bf16) {
  for (const int64_t columns : {1, 256, 521}) walk(ISOBIT_BF16, ISOBIT_GELU_TANH, columns);
  walk(ISOBIT_BF16, ISOBIT_GELU_ERF, 260);
}

TEST_P(GegluInterpreter, Fp16) {
  walk(ISOBIT_FP16, ISOBIT_GELU_TANH, 259);
  walk(ISOBIT_FP16, ISOBIT_GELU_ERF, 512);
}

TEST_P(GegluInterpreter, Fp32) {
  walk(ISOBIT_FP32, ISOBIT_GELU_TANH, 256);
  walk(ISOBIT_FP32, ISOBIT_GELU_ERF, 133);
}

// Every bf16 value, with the schedule that the rules choose.
TEST_P(GegluInterpreter, EveryBf16Value) {
  ptx::EmulatedRuntime emulated(kFolder, {.capability = GetParam()});
  const ScopedRuntime scope(&emulated);
  Problem wanted(ISOBIT_BF16, {.rows = 1, .columns = 65536}, Values::kEveryHalf);
  const isobit_geglu_backward_args cpu_args = wanted.backward(ISOBIT_GELU_TANH);
  ASSERT_EQ(isobit_geglu_backward(&cpu_args, nullptr), ISOBIT_OK);
  Problem got(ISOBIT_BF16, {.rows = 1, .columns = 65536}, Values::kEveryHalf);
  const ptx::DeviceBuffer buffer = emulated.upload(got.arena.data(), got.arena.size());
  const isobit_geglu_backward_args args = got.backward(buffer.data(), kDevice, ISOBIT_GELU_TANH);
  ASSERT_EQ(isobit_geglu_backward(&args, nullptr), ISOBIT_OK) << isobit_last_error();
  std::memcpy(got.arena.data(), buffer.data(), got.arena.size());
  EXPECT_TRUE(got.arena == wanted.arena);
}

TEST(GegluInterpreterTexts, ThereIsAnArchitectureToRun) { EXPECT_FALSE(architectures().empty()); }

INSTANTIATE_TEST_SUITE_P(Architectures, GegluInterpreter, testing::ValuesIn(architectures()),
                         [](const auto& instance) { return "sm" + std::to_string(instance.param); });

}  // namespace
}  // namespace isobit::geglu::test
