// A weight matrix of a checkpoint, read a few rows at a time, or taken over if it is NVFP4 already.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace isobit::cli {

// Where a matrix lies in the tensors of a JAX checkpoint. Stacked layers (openpi): gating_einsum [L, 2, H, I], linear
// [L, I, H]. A layer by itself (Gemma): gating_einsum [2, H, I] or [2, I, H], linear [I, H].
enum class Stack { kNone, kGate, kUp, kDown };

// The name of a projection without its ending, or of a stacked tensor with a layer of it.
struct MatrixName {
  std::string name;
  Stack stack = Stack::kNone;
  int64_t layer = 0;
  std::string linear = "";  // of a gate or up in a stack: its linear, whose shape tells H from I
};

// Element (r, c) is data[r * row_stride + c * column_stride].
struct Matrix {
  std::string name;
  int64_t rows = 0;
  int64_t columns = 0;

  // Already quantised: codes [rows, columns / 2] and linear scales [rows, columns / 16], both dense.
  bool packed = false;
  const uint8_t* codes = nullptr;
  const uint8_t* scales = nullptr;
  float decode_scale = 1.0f;

  // Rows [first, first + count) as fp32, not quantised matrices only.
  void read(int64_t first, int64_t count, float* out) const;

  // Factors of rows and of columns, or empty; read() multiplies by them.
  std::vector<float> row_factors, column_factors;

  const std::byte* data = nullptr;
  checkpoint::Dtype dtype = checkpoint::Dtype::kBF16;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

checkpoint::Result<Matrix> open_matrix(checkpoint::Checkpoint* from, const MatrixName& name);

// Number of layers in a stacked gating_einsum; 0 if it is a layer by itself.
checkpoint::Result<int64_t> stack_size(checkpoint::Checkpoint* from, const MatrixName& name);

}  // namespace isobit::cli
