// What kernels of nvfp4_geglu are told beside the weight.
#pragma once

#include "nvfp4/tile.h"
#include "nvfp4/tile_launch.h"
#include "ops/nvfp4_geglu/epilogue.h"
#include "ops/nvfp4_geglu/output.cuh"

namespace isobit::nvfp4_geglu {

struct Operands {
  device::Nvfp4Operand x;
  const float* scale_device[4];  // of x, gate, up, out; or null: scale
  float scale[4];
  Output out;
  numerics::Gelu gelu;

  __device__ __forceinline__ Scales scales() const {
    return scales_of(read_scale(0), read_scale(1), read_scale(2), read_scale(3));
  }
  __device__ __forceinline__ float read_scale(int i) const {
    return scale_device[i] != nullptr ? __ldg(scale_device[i]) : scale[i];
  }
};

inline Operands operands_of(const Params& p) {
  Operands operands = {};
  operands.x = nvfp4_operand(p.x, p.rows, p.k);
  const Nvfp4ScaleView scales[] = {p.x_scale, p.gate_scale, p.up_scale, p.out_scale};
  for (int i = 0; i < 4; ++i) {
    operands.scale_device[i] = scales[i].device;
    operands.scale[i] = scales[i].value;
  }
  operands.out = output_of(p);
  operands.gelu = p.gelu;
  return operands;
}

}  // namespace isobit::nvfp4_geglu
