// nvfp4_quantize: arguments -> checked parameters. Every rule and limit of the operator is enforced here.
#pragma once

#include <cstdint>

#include "isobit/nvfp4_quantize.h"
#include "nvfp4/view.h"

namespace isobit::nvfp4_quantize {

inline constexpr const char* kContract = "nvfp4_quantize/ieee-e2m1-e4m3/0";

// Checked parameters.
struct Params {
  int64_t rows;  // M
  int64_t k;     // K, a positive multiple of 16

  const void* x;     // [M, K] of dtype
  int64_t x_stride;  // elements from row to row
  isobit_dtype dtype;

  Nvfp4ScaleView global;  // encode
  Nvfp4View out;

  Device device;
  int threads;         // CPU only, 0: default
  const char* kernel;  // forced row of the table, or nullptr

  int64_t blocks() const { return k / 16; }
  int64_t padded_rows() const { return numerics::padded_scale_rows(out.layout, rows); }
  int64_t padded_blocks() const { return numerics::padded_scale_blocks(out.layout, blocks()); }
};

// The only place where isobit_nvfp4_quantize_args are read.
Status check(const isobit_nvfp4_quantize_args* args, Params* params);

}  // namespace isobit::nvfp4_quantize
