// nvfp4_geglu: arguments -> checked parameters. Every rule and limit of the operator is enforced here.
#pragma once

#include <cstdint>

#include "isobit/nvfp4_geglu.h"
#include "numerics/gelu.h"
#include "nvfp4/contract.h"

namespace isobit::nvfp4_geglu {

inline constexpr const char* kContract = "nvfp4_geglu/sm90-k16-f25/0";

// Checked parameters.
struct Params : Nvfp4ProductParams {
  int64_t width;  // I, a positive multiple of 16; the weight is [2I, K], rows gate 0, up 0, gate 1, up 1, ...

  Nvfp4ScaleView gate_scale, up_scale;  // decode
  Nvfp4ScaleView out_scale;             // encode
  Nvfp4View out;                        // [M, I]
  numerics::Gelu gelu;

  int64_t columns() const { return 2 * width; }
  int64_t out_blocks() const { return width / 16; }
  int64_t padded_rows() const { return numerics::padded_scale_rows(out.layout, rows); }
  int64_t padded_blocks() const { return numerics::padded_scale_blocks(out.layout, out_blocks()); }
};

// The only place where isobit_nvfp4_geglu_args are read.
Status check(const isobit_nvfp4_geglu_args* args, Params* params);

}  // namespace isobit::nvfp4_geglu
