// x of an NVFP4 product to bf16, for the kernels of SM90.
#pragma once

#include <cstdint>

#include "device/ptx/packed.cuh"
#include "numerics/scale_layout.h"
#include "nvfp4/decode.cuh"
#include "nvfp4/tile.h"
#include "nvfp4/wgmma.h"

namespace isobit::device {

// The codes of a block of 16.
__device__ __forceinline__ uint2 load_nvfp4_block(const Nvfp4Operand& x, int64_t row, uint32_t block) {
  const uint8_t* const codes = x.codes + row * x.row_bytes + 8 * block;
  if (x.aligned) return __ldg(reinterpret_cast<const uint2*>(codes));
  uint2 packed = {0, 0};
#pragma unroll
  for (int b = 0; b < 4; ++b) {
    packed.x |= static_cast<uint32_t>(__ldg(codes + b)) << (8 * b);
    packed.y |= static_cast<uint32_t>(__ldg(codes + 4 + b)) << (8 * b);
  }
  return packed;
}

// Half a block of x to 16 bytes; a thread each, so that a warp's stores are neighbours. Runs before the product, which
// may start meanwhile. The first half has the block's even elements, the second one the odd ones: a low or high half of
// every byte, in the order in which the product decodes its weights.
__device__ __forceinline__ void unpack_nvfp4_half(const Nvfp4Operand& x, const Nvfp4Unpack& to, int64_t index) {
  const auto per_row = 2 * static_cast<uint32_t>(x.blocks);
  // A division of 64 bits takes longer than everything else here. Rows fit 31 bits.
  const auto local = static_cast<uint32_t>(index >> 32 == 0 ? static_cast<uint32_t>(index) / per_row : index / per_row);
  if (local >= to.rows) return;
  const uint32_t row = static_cast<uint32_t>(to.first_row) + local;
  const uint32_t in_row = static_cast<uint32_t>(index) - local * per_row;
  const uint32_t block = in_row / 2;
  uint2 packed = load_nvfp4_block(x, row, block);
  if (in_row % 2 == 1) packed = {packed.x >> 4, packed.y >> 4};
  const uint32_t scale = nvfp4_scale_pair(__ldg(x.scales + numerics::scale_offset(x.layout, row, block, x.blocks)));
  constexpr uint32_t kTwoTo16 = 0x47804780u;
  uint32_t pairs[4];
#pragma unroll
  for (uint32_t q = 0; q < 4; ++q) {
    const uint32_t codes_of_pair = nvfp4_low_codes(__byte_perm(packed.x, packed.y, 0x4400u + 0x1111u * q));
    pairs[q] = ptx::mul_bf16x2(ptx::mul_bf16x2(codes_of_pair, scale), kTwoTo16);
  }
  *reinterpret_cast<uint4*>(to.out + 16 * index) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

}  // namespace isobit::device
