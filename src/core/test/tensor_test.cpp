// Checks of tensor views that every operator shares.
#include "core/tensor.h"

#include <gtest/gtest.h>

#include <string>

namespace isobit {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

TEST(TensorView, ACudaDeviceHasNoNegativeNumber) {
  isobit_tensor tensor = {nullptr, ISOBIT_FP32, ISOBIT_CUDA, -1, 1, {0}, {1}};
  EXPECT_EQ(check_device("x", tensor, {ISOBIT_CUDA, -1}).code(), ISOBIT_INVALID_ARGUMENT);
  EXPECT_STREQ(last_error(), "x: expected device_id 0 or more, got -1");
  tensor.device_type = ISOBIT_CPU;  // whose number nobody reads
  EXPECT_TRUE(check_device("x", tensor, {ISOBIT_CPU, 0}).ok()) << last_error();
}

TEST(TensorView, ElementsOfAWrittenViewMayNotMeet) {
  float data[8];
  const isobit_tensor apart = {data, ISOBIT_FP32, ISOBIT_CPU, 0, 2, {2, 3}, {3, 1}};
  EXPECT_TRUE(check_writable("x", apart).ok()) << last_error();
  const isobit_tensor meeting = {data, ISOBIT_FP32, ISOBIT_CPU, 0, 2, {2, 3}, {2, 1}};
  EXPECT_EQ(check_writable("x", meeting).code(), ISOBIT_INVALID_ARGUMENT);
  const isobit_tensor expanded = {data, ISOBIT_FP32, ISOBIT_CPU, 0, 2, {2, 3}, {0, 1}};
  EXPECT_EQ(check_writable("x", expanded).code(), ISOBIT_INVALID_ARGUMENT);
}

TEST(TensorView, AnEmptyViewIsWritableWhateverItsStrides) {
  const isobit_tensor expanded = {nullptr, ISOBIT_FP32, ISOBIT_CPU, 0, 3, {0, 2, 4}, {0, 0, 1}};
  EXPECT_TRUE(check_writable("x", expanded).ok()) << last_error();
  // The extent of these would not fit 63 bits.
  const isobit_tensor far = {nullptr, ISOBIT_FP32, ISOBIT_CPU, 0, 3, {kHuge, kHuge, 0}, {kHuge + 1, kHuge, 1}};
  EXPECT_TRUE(check_view("x", far, {ISOBIT_FP32}, {3}).ok()) << last_error();
  EXPECT_TRUE(check_writable("x", far).ok()) << last_error();
}

TEST(TensorView, ExtentsThatNoAddressHolds) {
  float data = 0;
  const isobit_tensor far = {&data, ISOBIT_FP32, ISOBIT_CPU, 0, 3, {kHuge, kHuge, 2}, {kHuge + 1, kHuge, 1}};
  EXPECT_EQ(check_view("x", far, {ISOBIT_FP32}, {3}).code(), ISOBIT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(last_error()).find("an extent below 2^62 bytes"), std::string::npos) << last_error();
}

}  // namespace
}  // namespace isobit
