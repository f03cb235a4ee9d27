// Test calls of nvfp4_linear in one arena.
#pragma once

#include <string>
#include <vector>

#include "isobit/nvfp4_linear.h"
#include "nvfp4/test/calls.h"

namespace isobit::nvfp4_linear::test {

using isobit::test::ScaleValues;

struct Shape {
  int64_t rows = 1;     // M
  int64_t columns = 1;  // N
  int64_t k = 16;
  isobit_dtype dtype = ISOBIT_FP32;
  isobit_nvfp4_layout x_layout = ISOBIT_NVFP4_128X4;
  isobit_nvfp4_layout weight_layout = ISOBIT_NVFP4_128X4;
  int64_t padding = 0;     // bytes behind rows of codes, elements behind rows of out
  size_t offset = 0;       // bytes of the codes off a multiple of 256
  int64_t out_offset = 0;  // elements of out
  bool device_scales = false;
  float x_scale = 1.0f, weight_scale = 1.0f;
  ScaleValues values = ScaleValues::kPlain;
};

class Problem {
 public:
  using ShapeType = Shape;
  using Args = isobit_nvfp4_linear_args;
  static constexpr isobit::test::Calls<Args> kCalls = {&isobit_nvfp4_linear, &isobit_nvfp4_linear_supported,
                                                       &isobit_nvfp4_linear_workspace};

  explicit Problem(const Shape& shape, uint64_t seed = 1);
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  Args args(void* base, Device device) const;
  Args args() { return args(arena.bytes.data(), {}); }
  // Runs on the CPU with the workspace that the call asks for.
  isobit_status run_cpu(int threads = 0, bool minimum_workspace = false);

  // Bits of out [M, N].
  std::vector<uint32_t> out() const;
  uint32_t out(int64_t row, int64_t column) const;

  // Bits that the tensor-core model gives, element by element.
  uint32_t model(int64_t row, int64_t column) const;

  const Shape& shape() const { return shape_; }
  isobit::test::Arena arena;
  isobit::test::Packed x, weight;

 private:
  Shape shape_;
  isobit::test::GlobalScale x_scale_, weight_scale_;
  size_t out_ = 0;
};

}  // namespace isobit::nvfp4_linear::test
