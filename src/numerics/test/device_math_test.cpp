// Host and device give the same bits for all 2^32 inputs of each function, and so do the hardware's conversions.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "numerics/test/device_math.h"

namespace isobit::numerics {
namespace {

constexpr uint32_t kChunk = 1u << 26;

// The number of outputs, of the inputs first, first + 1, ..., that the host computes otherwise; one such input goes to
// *example. The function is looked up once, so that the compiler may vectorise it.
template <int kFunction = 0>
uint64_t differences_of(Function function, uint32_t first, const uint32_t* outputs, uint32_t count,
                        std::atomic<uint64_t>* example) {
  uint64_t differences = 0;
  if constexpr (kFunction < static_cast<int>(Function::kCount)) {
    constexpr Function kThis = static_cast<Function>(kFunction);
    if (function != kThis) return differences_of<kFunction + 1>(function, first, outputs, count, example);
    for (uint32_t i = 0; i < count; ++i) differences += apply<kThis>(first + i) != outputs[i];
    for (uint32_t i = 0; differences > 0 && i < count; ++i) {
      if (apply<kThis>(first + i) != outputs[i]) *example = first + i;
    }
  }
  return differences;
}

uint64_t count_differences(Function function, uint32_t first, const std::vector<uint32_t>& outputs,
                           std::atomic<uint64_t>* example) {
  constexpr uint32_t kPiece = 4096;
  const uint32_t workers = std::max(1u, std::thread::hardware_concurrency());
  const auto size = static_cast<uint32_t>(outputs.size());
  std::atomic<uint64_t> differences{0};
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      uint64_t mine = 0;
      for (uint32_t i = worker * kPiece; i < size; i += workers * kPiece) {
        const uint32_t count = std::min(kPiece, size - i);
        mine += differences_of(function, first + i, outputs.data() + i, count, example);
      }
      differences += mine;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return differences;
}

void expect_equal_everywhere(Function function, bool hardware) {
  std::vector<uint32_t> outputs(kChunk);
  const uint64_t inputs = function == Function::kFp16ToFloat ? 65536 : uint64_t{1} << 32;
  std::atomic<uint64_t> example{0};
  uint64_t differences = 0;
  for (uint64_t first = 0; first < inputs; first += kChunk) {
    if (inputs < kChunk) outputs.resize(inputs);
    const char* error = evaluate_on_device(function, hardware, static_cast<uint32_t>(first),
                                           static_cast<uint32_t>(outputs.size()), outputs.data());
    ASSERT_EQ(error, nullptr) << error;
    differences += count_differences(function, static_cast<uint32_t>(first), outputs, &example);
  }
  EXPECT_EQ(differences, 0u) << "of " << inputs << ", for example at " << std::hex << example;
}

class DeviceMath : public testing::TestWithParam<int> {};

TEST_P(DeviceMath, HostAndDeviceAgreeOnEveryInput) {
  expect_equal_everywhere(static_cast<Function>(GetParam()), false);
}

class DeviceConversion : public testing::TestWithParam<int> {};

TEST_P(DeviceConversion, TheHardwareAgreesOnEveryInput) {
  expect_equal_everywhere(static_cast<Function>(GetParam()), true);
}

const auto name_of = [](const testing::TestParamInfo<int>& info) { return kFunctionNames[info.param]; };
INSTANTIATE_TEST_SUITE_P(Numerics, DeviceMath, testing::Range(0, static_cast<int>(Function::kCount)), name_of);
INSTANTIATE_TEST_SUITE_P(Numerics, DeviceConversion,
                         testing::Values(static_cast<int>(Function::kBf16), static_cast<int>(Function::kFp16),
                                         static_cast<int>(Function::kE4m3), static_cast<int>(Function::kFp16ToFloat)),
                         name_of);

}  // namespace
}  // namespace isobit::numerics
