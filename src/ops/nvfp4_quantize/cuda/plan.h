// The CUDA schedule of nvfp4_quantize as pure functions, tested without a GPU: a thread per block of 16, as many
// neighbouring threads a row as it has blocks (a power of two, at most the thread block), rows and pieces of rows on
// grid.x.
#pragma once

#include <cstdint>

#include "core/runtime.h"
#include "ops/nvfp4_quantize/contract.h"

namespace isobit::nvfp4_quantize::cuda {

inline constexpr uint32_t kThreads = 256;

// What the kernel is told; goes to it by value.
struct Job {
  const char* x;
  int64_t x_row_bytes;
  uint8_t* codes;
  int64_t codes_row_bytes;
  uint8_t* scales;
  const float* global_device;  // or null: global
  float global;
  numerics::ScaleLayout layout;
  uint32_t rows;
  uint32_t padded_rows;
  uint32_t blocks;
  uint32_t padded_blocks;
  uint32_t row_threads_log2;
  uint32_t pieces;  // of a row
  bool vector_loads;
  bool vector_stores;
};

Job job_of(const Params& params);

// Thread blocks of the call; one launch takes fewer than 2^31.
uint64_t grid_of(const Job& job);

}  // namespace isobit::nvfp4_quantize::cuda
