// Test calls of nvfp4_geglu in one arena.
#pragma once

#include <string>
#include <vector>

#include "isobit/nvfp4_geglu.h"
#include "nvfp4/test/calls.h"

namespace isobit::nvfp4_geglu::test {

using isobit::test::ScaleValues;

struct Shape {
  int64_t rows = 1;    // M
  int64_t width = 16;  // I
  int64_t k = 16;
  isobit_gelu gelu = ISOBIT_GELU_TANH;
  isobit_nvfp4_layout x_layout = ISOBIT_NVFP4_128X4;
  isobit_nvfp4_layout weight_layout = ISOBIT_NVFP4_128X4;
  isobit_nvfp4_layout out_layout = ISOBIT_NVFP4_128X4;
  int64_t padding = 0;  // bytes behind rows of codes
  size_t offset = 0;    // bytes of the codes off a multiple of 256
  bool device_scales = false;
  float x_scale = 0.03f, gate_scale = 1.0f, up_scale = 1.0f, out_scale = 1.0f;
  ScaleValues values = ScaleValues::kPlain;
};

class Problem {
 public:
  using ShapeType = Shape;
  using Args = isobit_nvfp4_geglu_args;
  static constexpr isobit::test::Calls<Args> kCalls = {&isobit_nvfp4_geglu, &isobit_nvfp4_geglu_supported,
                                                       &isobit_nvfp4_geglu_workspace};

  explicit Problem(const Shape& shape, uint64_t seed = 1);
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  Args args(void* base, Device device) const;
  Args args() { return args(arena.bytes.data(), {}); }
  // Runs on the CPU with the workspace that the call asks for.
  isobit_status run_cpu(int threads = 0, bool minimum_workspace = false);

  // Codes and scales of every row.
  std::string out_bytes() const;

  // What the tensor-core model, gelu and the quantiser's rule give for a block of 16 outputs: the 8 bytes of codes and
  // the scale.
  std::string model_block(int64_t row, int64_t block) const;
  std::string out_block(int64_t row, int64_t block) const;

  const Shape& shape() const { return shape_; }
  isobit::test::Arena arena;
  isobit::test::Packed x, weight, out;

 private:
  Shape shape_;
  isobit::test::GlobalScale x_scale_, gate_scale_, up_scale_, out_scale_;
};

}  // namespace isobit::nvfp4_geglu::test
