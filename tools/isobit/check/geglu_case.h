// Operands of geglu on a device, and calls over parts of them: any rows, layout, alignment, threads.
#pragma once

#include <isobit/geglu.h>

#include <cstdint>
#include <string>
#include <vector>

#include "device.h"
#include "kernels.h"

namespace isobit::cli {

// Where the two tensors of a pair lie: in two buffers' worth of rows, side by side in one row, element by element.
enum class GegluArrangement { kSeparate, kStacked, kInterleaved };

// What a call may do differently without a change of bits.
struct GegluCall {
  int64_t first_row = 0;
  int64_t rows = 1;
  GegluArrangement inputs = GegluArrangement::kSeparate;
  GegluArrangement gradients = GegluArrangement::kSeparate;
  bool swapped = false;   // up before gate, d_up before d_gate
  int64_t gap = 0;        // elements between rows
  int64_t offset = 0;     // elements between a 256-byte boundary and every buffer's first row
  bool in_place = false;  // gradients over the inputs
  int32_t threads = 1;
};

class GegluCase {
 public:
  GegluCase(const Kernel& kernel, Place place, int64_t rows, int64_t columns, isobit_dtype dtype, isobit_gelu gelu,
            uint64_t seed);

  int64_t rows() const { return rows_; }
  // Row by row the bytes of out, d_gate and d_up, of a forward and a backward call.
  std::vector<std::string> run(const GegluCall& call) const;
  // Compares one row of them with the oracle: the largest error in units of its bound.
  double worst_error(int64_t row, const std::string& bytes) const;

 private:
  std::string kernel_;
  Place place_;
  int64_t rows_, columns_;
  isobit_dtype dtype_;
  isobit_gelu gelu_;
  std::vector<float> gate_, up_, d_out_;  // values of the dtype, [rows, columns]
};

}  // namespace isobit::cli
