// A copy of an arena of bytes in GPU memory, for tests.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace isobit::test {

class DeviceArena {
 public:
  explicit DeviceArena(const std::vector<std::byte>& bytes) {
    EXPECT_EQ(cudaMalloc(&data_, bytes.size()), cudaSuccess);
    upload(bytes);
  }
  ~DeviceArena() { cudaFree(data_); }
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;
  void* data() const { return data_; }
  void upload(const std::vector<std::byte>& bytes) const {
    EXPECT_EQ(cudaMemcpy(data_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  void download(std::vector<std::byte>* bytes) const {
    EXPECT_EQ(cudaMemcpy(bytes->data(), data_, bytes->size(), cudaMemcpyDeviceToHost), cudaSuccess);
  }

 private:
  void* data_ = nullptr;
};

}  // namespace isobit::test
