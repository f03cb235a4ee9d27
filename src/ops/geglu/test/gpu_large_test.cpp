// More than 2^31 elements on a device: the rows at both ends against the CPU backend.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "ops/geglu/test/problem.h"

namespace isobit::geglu::test {
namespace {

constexpr int64_t kRows = 149911;
constexpr int64_t kColumns = 14337;  // odd, so that rows start on every alignment
constexpr int64_t kEnd = 8;          // rows that are looked at, at each end

isobit_tensor tensor(void* data, isobit_device_type type, int64_t rows, int64_t stride) {
  isobit_tensor t = {};
  t.data = data;
  t.dtype = ISOBIT_BF16;
  t.device_type = type;
  t.rank = 2;
  t.shape[0] = rows;
  t.shape[1] = kColumns;
  t.stride[0] = stride;
  t.stride[1] = 1;
  return t;
}

isobit_geglu_forward_args args_of(isobit_tensor gate, isobit_tensor up, isobit_tensor out, const char* kernel) {
  isobit_geglu_forward_args args = {};
  args.struct_size = sizeof args;
  args.kernel = kernel;
  args.gate = gate;
  args.up = up;
  args.out = out;
  args.gelu = ISOBIT_GELU_TANH;
  return args;
}

TEST(GegluGpuLarge, RowsBeyondTheFirst2To31Elements) {
  for (const int64_t stride : {kColumns, kColumns + 1}) {
    for (const char* kernel : {"tile", "row"}) {
      const auto bytes = static_cast<size_t>(kRows * stride * 2);
      uint16_t* device[3] = {};
      for (uint16_t*& buffer : device) {
        void* memory = nullptr;
        ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
        ASSERT_EQ(cudaMemset(memory, 0, bytes), cudaSuccess);
        buffer = static_cast<uint16_t*>(memory);
      }
      std::vector<uint16_t> host[3];
      const auto end = static_cast<size_t>(kEnd * stride);
      for (std::vector<uint16_t>& values : host) values.assign(end, 0);
      for (size_t i = 0; i < end; ++i) {
        host[0][i] = static_cast<uint16_t>(bits_of(ISOBIT_BF16, 0.001f * static_cast<float>(i % 9973) - 5.0f));
        host[1][i] = static_cast<uint16_t>(bits_of(ISOBIT_BF16, 1.0f + 0.01f * static_cast<float>(i % 101)));
      }
      const isobit_geglu_forward_args wanted_args =
          args_of(tensor(host[0].data(), ISOBIT_CPU, kEnd, stride), tensor(host[1].data(), ISOBIT_CPU, kEnd, stride),
                  tensor(host[2].data(), ISOBIT_CPU, kEnd, stride), nullptr);
      ASSERT_EQ(isobit_geglu_forward(&wanted_args, nullptr), ISOBIT_OK) << isobit_last_error();
      const int64_t starts[] = {0, kRows - kEnd};
      for (const int64_t row : starts) {
        for (int i = 0; i < 2; ++i) {
          ASSERT_EQ(cudaMemcpy(device[i] + row * stride, host[i].data(), end * 2, cudaMemcpyHostToDevice), cudaSuccess);
        }
      }
      const isobit_geglu_forward_args args =
          args_of(tensor(device[0], ISOBIT_CUDA, kRows, stride), tensor(device[1], ISOBIT_CUDA, kRows, stride),
                  tensor(device[2], ISOBIT_CUDA, kRows, stride), kernel);
      ASSERT_EQ(isobit_geglu_forward(&args, nullptr), ISOBIT_OK) << isobit_last_error();
      for (const int64_t row : starts) {
        std::vector<uint16_t> got(end);
        ASSERT_EQ(cudaMemcpy(got.data(), device[2] + row * stride, end * 2, cudaMemcpyDeviceToHost), cudaSuccess);
        EXPECT_TRUE(got == host[2]) << kernel << " from row " << row << ", stride " << stride;
      }
      for (uint16_t* buffer : device) cudaFree(buffer);
    }
  }
}

}  // namespace
}  // namespace isobit::geglu::test
