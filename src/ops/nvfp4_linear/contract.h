// nvfp4_linear: arguments -> checked parameters. Every rule and limit of the operator is enforced here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isobit/nvfp4_linear.h"
#include "nvfp4/view.h"

namespace isobit::nvfp4_linear {

inline constexpr const char* kContract = "nvfp4_linear/sm90-k16-f25/0";
// Nobody has measured the tensor-core rule of the other architectures: no promise across devices.
inline constexpr const char* kUnmeasured = "nvfp4_linear/sm80-unmeasured/0";
// What the block-scaled instructions make of a sum is not measured either, and it is another rule: one instruction adds
// four blocks.
inline constexpr const char* kScaledUnmeasured = "nvfp4_linear/sm100-unmeasured/0";
inline constexpr size_t kWorkspaceAlignment = 256;

// Checked parameters; goes to kernels by value.
struct Params {
  int64_t rows;     // M
  int64_t columns;  // N
  int64_t k;        // K, a positive multiple of 16

  Nvfp4View x;                           // [M, K]
  Nvfp4View weight;                      // [N, K]
  Nvfp4ScaleView x_scale, weight_scale;  // decode

  void* out;           // [M, N] of dtype
  int64_t out_stride;  // elements from row to row
  isobit_dtype dtype;  // bf16 or fp32

  void* workspace;
  size_t workspace_bytes;
  Device device;
  int threads;         // CPU only, 0: default
  const char* kernel;  // forced row of the table, or nullptr

  int64_t blocks() const { return k / 16; }
};

// The only place where isobit_nvfp4_linear_args are read.
Status check(const isobit_nvfp4_linear_args* args, Params* params);

}  // namespace isobit::nvfp4_linear
