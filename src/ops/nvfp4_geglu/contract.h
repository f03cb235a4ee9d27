// nvfp4_geglu: arguments -> checked parameters. Every rule and limit of the operator is enforced here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isobit/nvfp4_geglu.h"
#include "numerics/gelu.h"
#include "nvfp4/view.h"

namespace isobit::nvfp4_geglu {

inline constexpr const char* kContract = "nvfp4_geglu/sm90-k16-f25/0";
// Nobody has measured the tensor-core rule of the other architectures: no promise across devices.
inline constexpr const char* kUnmeasured = "nvfp4_geglu/sm80-unmeasured/0";
// What the block-scaled instructions make of a sum is not measured either, and it is another rule: one instruction adds
// four blocks.
inline constexpr const char* kScaledUnmeasured = "nvfp4_geglu/sm100-unmeasured/0";
inline constexpr size_t kWorkspaceAlignment = 256;

// Checked parameters; goes to kernels by value.
struct Params {
  int64_t rows;   // M
  int64_t k;      // K, a positive multiple of 16
  int64_t width;  // I, a positive multiple of 16

  Nvfp4View x;                                   // [M, K]
  Nvfp4View weight;                              // [2I, K], rows gate 0, up 0, gate 1, up 1, ...
  Nvfp4ScaleView x_scale, gate_scale, up_scale;  // decode
  Nvfp4ScaleView out_scale;                      // encode
  Nvfp4View out;                                 // [M, I]
  numerics::Gelu gelu;

  void* workspace;
  size_t workspace_bytes;
  Device device;
  int threads;         // CPU only, 0: default
  const char* kernel;  // forced row of the table, or nullptr

  int64_t columns() const { return 2 * width; }
  int64_t out_blocks() const { return width / 16; }
  int64_t padded_rows() const { return numerics::padded_scale_rows(out.layout, rows); }
  int64_t padded_blocks() const { return numerics::padded_scale_blocks(out.layout, out_blocks()); }
};

// The only place where isobit_nvfp4_geglu_args are read.
Status check(const isobit_nvfp4_geglu_args* args, Params* params);

}  // namespace isobit::nvfp4_geglu
