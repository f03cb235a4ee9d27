// From a matrix of a checkpoint to packed codes and scales, with a report of what that cost.
#pragma once

#include <isobit/nvfp4.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "checkpoint/status.h"
#include "pack/matrix.h"

namespace isobit::cli {

// Of a matrix that was quantised here.
struct PackReport {
  double relative_l2 = 0;  // of the decoded values against the checkpoint's
  double cosine = 1;
  double saturated = 0;  // share of blocks whose largest value is beyond the largest scale
  double flushed = 0;    // share of blocks that are not zero but have scale 0
};

// Codes [rows, columns / 2] and linear scales [rows, columns / 16], zeros where the matrix was padded.
struct PackedMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<uint8_t> codes, scales;
  float decode_scale = 1.0f;
  bool taken_over = false;  // it was NVFP4 already
  PackReport report;        // if not
};

using RowProgress = std::function<void(int64_t done, int64_t total)>;

// Pads with zeros to [rows, columns]. The global scale is 2688 / the largest magnitude, 1 for a matrix of zeros.
checkpoint::Result<PackedMatrix> quantize(const Matrix& matrix, int64_t rows, int64_t columns,
                                          const RowProgress& progress);

// Two matrices of one shape as rows a0, b0, a1, b1, ...; the scales in `layout`. Or one matrix as it is.
struct Arranged {
  int64_t rows = 0;
  std::vector<uint8_t> codes, scales;
};
Arranged interleave(const PackedMatrix& a, const PackedMatrix& b, isobit_nvfp4_layout layout);
Arranged arrange(const PackedMatrix& a, isobit_nvfp4_layout layout);

}  // namespace isobit::cli
