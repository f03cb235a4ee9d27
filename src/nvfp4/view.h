// Checks of NVFP4 matrices and global scales (isobit/nvfp4.h), shared by the operators that take them.
#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "isobit/nvfp4.h"
#include "numerics/scale_layout.h"

namespace isobit {

inline constexpr int64_t kNvfp4MaxRows = (int64_t{1} << 31) - 1;
inline constexpr int64_t kNvfp4MaxK = int64_t{1} << 24;

// A checked matrix [rows, k]; written or read, as the operator says.
struct Nvfp4View {
  uint8_t* codes;
  int64_t row_stride;  // bytes
  uint8_t* scales;
  numerics::ScaleLayout layout;
};

// A checked global scale: *device if that is not null, else value.
struct Nvfp4ScaleView {
  const float* device;
  float value;
};

// The leading dimensions of a tensor as rows at one distance (dimensions of size 1 have no say): their number and their
// distance in elements, 0 if there is one row at most.
struct RowView {
  int64_t rows = 0;
  int64_t stride = 0;
};
Status collapse_rows(const char* name, const isobit_tensor& tensor, RowView* out);

Status check_k(const char* name, int64_t k);

// codes [rows, k / 2] of the leading dimensions of `leading` (or [rows, k / 2] alone if that is null), scales of
// (rows, k). `name` is the argument's name, for example "out".
Status check_nvfp4(const char* name, const isobit_nvfp4_matrix& matrix, const isobit_tensor* leading, int64_t rows,
                   int64_t k, Device device, Nvfp4View* out);

// A matrix whose codes say how many rows and columns it has.
struct Nvfp4Shape {
  int64_t rows;
  int64_t k;
};
Status check_nvfp4_input(const char* name, const isobit_nvfp4_matrix& matrix, Device device, Nvfp4Shape* shape,
                         Nvfp4View* out);

Status check_nvfp4_scale(const char* name, const isobit_nvfp4_scale& scale, Device device, Nvfp4ScaleView* out);

// A written tensor and what it may not share memory with; absent tensors overlap nothing. Refused if two views overlap.
Status check_apart(const char* name, const isobit_tensor& written, const char* other_name, const isobit_tensor& other);

}  // namespace isobit
