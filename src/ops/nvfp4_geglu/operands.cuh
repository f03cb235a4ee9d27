// What kernels of nvfp4_geglu are told beside the weight.
#pragma once

#include "nvfp4/tile.h"
#include "nvfp4/tile_launch.h"
#include "ops/nvfp4_geglu/epilogue.h"
#include "ops/nvfp4_geglu/output.cuh"

namespace isobit::nvfp4_geglu {

struct GlobalScales {
  const float* device[4];  // of x, gate, up, out; or null: value
  float value[4];

  __device__ __forceinline__ float read(int i) const { return device[i] != nullptr ? __ldg(device[i]) : value[i]; }
  __device__ __forceinline__ Scales all() const { return scales_of(read(0), read(1), read(2), read(3)); }
};

inline GlobalScales global_scales_of(const Params& p) {
  const Nvfp4ScaleView views[] = {p.x_scale, p.gate_scale, p.up_scale, p.out_scale};
  GlobalScales scales = {};
  for (int i = 0; i < 4; ++i) {
    scales.device[i] = views[i].device;
    scales.value[i] = views[i].value;
  }
  return scales;
}

struct Operands {
  device::Nvfp4Operand x;
  GlobalScales scales;
  Output out;
  numerics::Gelu gelu;
};

inline Operands operands_of(const Params& p) {
  return {nvfp4_operand(p.x, p.rows, p.k), global_scales_of(p), output_of(p), p.gelu};
}

}  // namespace isobit::nvfp4_geglu
