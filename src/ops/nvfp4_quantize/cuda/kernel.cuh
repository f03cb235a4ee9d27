// nvfp4_quantize on CUDA: one thread encodes one block of 16.
//
//   x  ─ 16-byte loads ─ 16 fp32 ─ amax ─ E4M3 scale ─ multiplier ─ 16 x E2M1 ─ 8-byte store ─ codes
//                                            └───────────────────────────────── 1-byte store ─ scales
//
// Threads of padding rows and padding blocks store a zero scale and nothing else. Operands that are not aligned for
// vectors are moved element by element by the same threads.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/ptx/convert.cuh"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "numerics/fp32.h"
#include "numerics/nvfp4_block.h"
#include "numerics/scale_layout.h"
#include "nvfp4/encode.cuh"
#include "ops/nvfp4_quantize/cuda/plan.h"

namespace isobit::nvfp4_quantize::cuda {

using numerics::kNvfp4Block;

template <class Format>
__device__ __forceinline__ void unpack(uint32_t word, float* values) {
  if constexpr (std::is_same_v<Format, numerics::Fp32>) {
    values[0] = __uint_as_float(word);
  } else if constexpr (std::is_same_v<Format, numerics::Bf16>) {
    values[0] = __uint_as_float(word << 16);
    values[1] = __uint_as_float(word & 0xFFFF0000u);
  } else {
    values[0] = device::ptx::float_from_fp16(static_cast<uint16_t>(word));
    values[1] = device::ptx::float_from_fp16(static_cast<uint16_t>(word >> 16));
  }
}

template <class Format>
__device__ __forceinline__ void load_block(const char* from, bool vectors, float (&values)[kNvfp4Block]) {
  constexpr int kWords = std::is_same_v<Format, numerics::Fp32> ? kNvfp4Block : kNvfp4Block / 2;
  constexpr int kElements = kNvfp4Block / kWords;
  uint32_t words[kWords];
  if (vectors) {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(from) + i / 4);
      words[i] = v.x, words[i + 1] = v.y, words[i + 2] = v.z, words[i + 3] = v.w;
    }
  } else if constexpr (std::is_same_v<Format, numerics::Fp32>) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __ldg(reinterpret_cast<const uint32_t*>(from) + i);
  } else {
    const auto* const halves = reinterpret_cast<const uint16_t*>(from);
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      words[i] = __ldg(halves + 2 * i) | static_cast<uint32_t>(__ldg(halves + 2 * i + 1)) << 16;
    }
  }
#pragma unroll
  for (int i = 0; i < kWords; ++i) unpack<Format>(words[i], values + i * kElements);
}

template <class Format>
__global__ void __launch_bounds__(kThreads) nvfp4_quantize_blocks(const Job job) {
  const uint32_t row_group = blockIdx.x / job.pieces;
  const uint32_t piece = blockIdx.x - row_group * job.pieces;
  const uint32_t row =
      (row_group << (__ffs(kThreads) - 1 - job.row_threads_log2)) + (threadIdx.x >> job.row_threads_log2);
  const uint32_t block = (piece << job.row_threads_log2) + (threadIdx.x & ((1u << job.row_threads_log2) - 1));
  if (row >= job.padded_rows || block >= job.padded_blocks) return;
  uint8_t scale = 0;
  if (row < job.rows && block < job.blocks) {
    constexpr int64_t kBlockBytes = std::is_same_v<Format, numerics::Fp32> ? 4 * kNvfp4Block : 2 * kNvfp4Block;
    const numerics::Nvfp4Encoder encoder =
        numerics::nvfp4_encoder(job.global_device != nullptr ? __ldg(job.global_device) : job.global);
    float values[kNvfp4Block];
    load_block<Format>(job.x + row * job.x_row_bytes + block * kBlockBytes, job.vector_loads, values);
    uint32_t codes[2];
    scale = device::encode_nvfp4(encoder, values, codes);
    device::store_nvfp4_codes(job.codes + row * job.codes_row_bytes + block * int64_t{8}, job.vector_stores, codes);
  }
  job.scales[numerics::scale_offset(job.layout, row, block, job.blocks)] = scale;
}

}  // namespace isobit::nvfp4_quantize::cuda
