// nvfp4_geglu with the block-scaled matrix instructions (nvfp4/scaled_tile.cuh): tiles of 128 rows x 256 weight rows,
// which are 128 outputs. A finishing thread has one row and 64 outputs, four whole blocks: nothing is exchanged.
//
//   128 sums: gate, up, gate, up, ... -> * scales -> gelu(gate) up -> largest of 16 -> scale, 16 codes
//   four times -> 32 bytes of codes, one word of scales
#pragma once

#include <cstdint>

#include "numerics/scale_layout.h"
#include "nvfp4/encode.cuh"
#include "nvfp4/scaled_tile.cuh"
#include "ops/nvfp4_geglu/operands.cuh"

namespace isobit::nvfp4_geglu::sm100 {

using device::ScaledTile;
using numerics::Gelu;
using numerics::kNvfp4Block;

constexpr int kThreadBlocks = ScaledTile::kThreadColumns / (2 * kNvfp4Block);
static_assert(kThreadBlocks == 4, "a word of scales");

// What the kernel is told besides the operands; goes to it by value.
struct Job {
  device::ScaledPlan plan;
  GlobalScales scales;
  uint8_t* codes;  // aligned to 8 bytes, and every row
  int64_t codes_row_bytes;
  uint8_t* out_scales;  // aligned to 4 bytes unless the layout is linear
  numerics::ScaleLayout out_layout;
  bool wide;  // codes and every row are aligned to 16 bytes
  int64_t rows, padded_rows, padded_blocks, blocks;
};

// What a thread writes of its row.
struct Encoded {
  uint32_t codes[kThreadBlocks][2];
  uint32_t scales;
};

template <Gelu kGelu>
__device__ __forceinline__ void encode(const Scales& scales, const float (&sums)[ScaledTile::kThreadColumns],
                                       Encoded& out) {
  out.scales = 0;
#pragma unroll
  for (int block = 0; block < kThreadBlocks; ++block) {
    float hidden[kNvfp4Block];
#pragma unroll
    for (int i = 0; i < kNvfp4Block; ++i) {
      const int column = 2 * (block * kNvfp4Block + i);
      hidden[i] = hidden_of<kGelu>(sums[column], plus_zero(sums[column + 1]), scales);
    }
    out.scales |= static_cast<uint32_t>(device::encode_nvfp4(scales.out, hidden, out.codes[block])) << (8 * block);
  }
}

__device__ __forceinline__ void store_codes(const Job& job, int64_t row, int64_t first, int64_t count,
                                            const Encoded& encoded) {
  uint8_t* const to = job.codes + row * job.codes_row_bytes + first * 8;
  const auto& codes = encoded.codes;
  if (job.wide && count >= kThreadBlocks) {
    auto* const wide = reinterpret_cast<uint4*>(to);
    wide[0] = make_uint4(codes[0][0], codes[0][1], codes[1][0], codes[1][1]);
    wide[1] = make_uint4(codes[2][0], codes[2][1], codes[3][0], codes[3][1]);
    return;
  }
#pragma unroll
  for (int block = 0; block < kThreadBlocks; ++block) {
    if (block < count) reinterpret_cast<uint2*>(to)[block] = make_uint2(codes[block][0], codes[block][1]);
  }
}

// Four blocks' scales; those of padding rows and blocks are 0.
__device__ __forceinline__ void store_scales(const Job& job, int64_t row, int64_t first, int64_t count,
                                             uint32_t scales) {
  uint8_t* const to = job.out_scales + numerics::scale_offset(job.out_layout, row, first, job.blocks);
  if (job.out_layout == numerics::ScaleLayout::kLinear) {
#pragma unroll
    for (int block = 0; block < kThreadBlocks; ++block) {
      if (block < count) to[block] = static_cast<uint8_t>(scales >> (8 * block));
    }
  } else {
    *reinterpret_cast<uint32_t*>(to) = count >= kThreadBlocks ? scales : scales & ((1u << (8 * count)) - 1);
  }
}

template <Gelu kGelu>
__device__ __forceinline__ void finish(const Job& job, const Scales& scales, int64_t row, int64_t column,
                                       const float (&sums)[ScaledTile::kThreadColumns]) {
  const int64_t first = column / (2 * kNvfp4Block);
  if (row >= job.padded_rows || first >= job.padded_blocks) return;
  const int64_t count = job.blocks - first;
  Encoded encoded;
  encoded.scales = 0;
  if (row < job.rows) {
    encode<kGelu>(scales, sums, encoded);
    store_codes(job, row, first, count, encoded);
  }
  store_scales(job, row, first, count, encoded.scales);
}

template <Gelu kGelu, int kBlocks>
__global__ void __launch_bounds__(ScaledTile::kThreads, 1)
    nvfp4_geglu_scaled(const __grid_constant__ device::ScaledOperands operands, const __grid_constant__ Job job) {
  extern __shared__ __align__(128) unsigned char shared[];
  device::ScaledPipeline<kBlocks>(shared, job.plan).run(operands, [&] {
    const Scales scales = job.scales.all();
    return [&job, scales](int64_t row, int64_t column, const float(&sums)[ScaledTile::kThreadColumns]) {
      finish<kGelu>(job, scales, row, column, sums);
    };
  });
}

}  // namespace isobit::nvfp4_geglu::sm100
