// geglu: arguments -> checked parameters. Every rule and limit of the operator is enforced here.
#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "isobit/geglu.h"
#include "numerics/gelu.h"

namespace isobit::geglu {

inline constexpr const char* kContract = "geglu/ieee-fp32/1";

// One [rows, columns] operand; elements (r, c) at data + (r * row_stride + c * step) elements.
struct Matrix {
  void* data = nullptr;
  int64_t row_stride = 0;
};

// Checked parameters; goes to kernels by value.
struct Params {
  int64_t rows;     // product of the leading dimensions
  int64_t columns;  // I

  Matrix gate, up;
  Matrix out;             // forward: out; backward: d_out. Step 1
  Matrix d_gate, d_up;    // backward
  int32_t input_step;     // of gate and up: 1, or 2 if they alternate in one buffer
  int32_t gradient_step;  // of d_gate and d_up

  isobit_dtype dtype;
  numerics::Gelu gelu;
  bool backward;
  bool round_gelu;

  Device device;
  int threads;         // CPU only, 0: default
  const char* kernel;  // forced row of the table, or nullptr
};

// The only places where the argument structs are read.
Status check(const isobit_geglu_forward_args* args, Params* params);
Status check(const isobit_geglu_backward_args* args, Params* params);

// The same elements as one row, if no operand has a gap between its rows; else the parameters unchanged. Bits do not
// depend on it.
Params flattened(const Params& params);

}  // namespace isobit::geglu
