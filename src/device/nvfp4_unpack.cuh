// x of an NVFP4 product to bf16, before the WGMMA pipeline of nvfp4_wgmma.cuh.
#pragma once

#include <cstdint>

#include "device/nvfp4_decode.cuh"
#include "device/nvfp4_tile.h"
#include "device/nvfp4_wgmma.h"
#include "numerics/scale_layout.h"

namespace isobit::device {

// One block of x to 32 bytes; a thread each. Runs before the product, which may start meanwhile.
__device__ __forceinline__ void unpack_nvfp4_block(const Nvfp4Operand& x, const Nvfp4Unpack& to, int64_t index) {
  const int64_t local = index / x.blocks;
  if (local >= to.rows) return;
  const int64_t row = to.first_row + local;
  const auto block = static_cast<int32_t>(index - local * x.blocks);
  const uint8_t* const codes = x.codes + row * x.row_bytes + 8 * block;
  uint2 packed = {0, 0};
  if (x.aligned) {
    packed = __ldg(reinterpret_cast<const uint2*>(codes));
  } else {
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      packed.x |= static_cast<uint32_t>(__ldg(codes + b)) << (8 * b);
      packed.y |= static_cast<uint32_t>(__ldg(codes + 4 + b)) << (8 * b);
    }
  }
  const uint32_t scale = nvfp4_scale_pair(__ldg(x.scales + numerics::scale_offset(x.layout, row, block, x.blocks)));
  constexpr uint32_t kTwoTo16 = 0x47804780u;
  const auto decode = [&](uint32_t word) {
    const uint4 pairs = decode_nvfp4(word, scale);
    return make_uint4(ptx::mul_bf16x2(pairs.x, kTwoTo16), ptx::mul_bf16x2(pairs.y, kTwoTo16),
                      ptx::mul_bf16x2(pairs.z, kTwoTo16), ptx::mul_bf16x2(pairs.w, kTwoTo16));
  };
  auto* const out = reinterpret_cast<uint4*>(to.out + 32 * (local * x.blocks + block));
  out[0] = decode(packed.x);
  out[1] = decode(packed.y);
}

}  // namespace isobit::device
