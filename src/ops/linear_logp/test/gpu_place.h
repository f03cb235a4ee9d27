// The current GPU as the place of a backward call.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "ops/linear_logp/test/backward_case.h"

namespace isobit::linear_logp::test {

class Gpu final : public Place {
 public:
  Gpu() = default;
  ~Gpu() override {
    for (void* memory : memory_) cudaFree(memory);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  int device_type() const override { return ISOBIT_CUDA; }
  void* put(const void* host, size_t bytes) override {
    void* const memory = room(bytes);
    expect_ok(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice));
    return memory;
  }
  void* room(size_t bytes) override {
    void* memory = nullptr;
    expect_ok(cudaMalloc(&memory, bytes + 1));
    expect_ok(cudaMemset(memory, 0xFF, bytes));  // NaN wherever something is read that nobody has written
    memory_.push_back(memory);
    return memory;
  }
  void fetch(void* host, const void* place, size_t bytes) override {
    expect_ok(cudaMemcpy(host, place, bytes, cudaMemcpyDeviceToHost));
  }

 private:
  static void expect_ok(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

  std::vector<void*> memory_;
};

}  // namespace isobit::linear_logp::test
