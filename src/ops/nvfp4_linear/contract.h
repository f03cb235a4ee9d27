// nvfp4_linear: arguments -> checked parameters. Every rule and limit of the operator is enforced here.
#pragma once

#include <cstdint>

#include "isobit/nvfp4_linear.h"
#include "nvfp4/contract.h"

namespace isobit::nvfp4_linear {

inline constexpr const char* kContract = "nvfp4_linear/sm90-k16-f25/0";

// Checked parameters.
struct Params : Nvfp4ProductParams {
  int64_t columns;  // N, rows of the weight

  Nvfp4ScaleView weight_scale;  // decode

  void* out;           // [M, N] of dtype
  int64_t out_stride;  // elements from row to row
  isobit_dtype dtype;  // bf16 or fp32

  int64_t blocks() const { return k / 16; }
};

// The only place where isobit_nvfp4_linear_args are read.
Status check(const isobit_nvfp4_linear_args* args, Params* params);

}  // namespace isobit::nvfp4_linear
