// nvfp4_geglu of few rows: the pipeline of nvfp4/few_rows.cuh, whose thread has gate and up of an output beside each
// other, then
//
//   sums ── * scales ── gelu(gate) up ── fp32 ──> x's place in shared memory ── 16 outputs of a row ── scale, 16 codes
//
// One kernel, no workspace. The copying warp clears the padding of out.scales.
#pragma once

#include "device/ptx/synchronize.cuh"
#include "nvfp4/few_rows.cuh"
#include "ops/nvfp4_geglu/operands.cuh"

namespace isobit::nvfp4_geglu::sm90 {

namespace ptx = device::ptx;
using numerics::Gelu;

struct FewJob {
  device::Nvfp4FewPlan plan;
  Operands operands;
};

// Hidden values of the block: a row of x after the other, 16-byte chunks of an output's block of 16 exchanged so that
// lanes that read whole blocks do not meet in a bank.
template <class Config>
struct FewHidden {
  uint32_t words;
  __device__ __forceinline__ uint32_t chunk(int token, int block, int c) const {
    return words + token * (Config::Stage::kPairs * 4) + block * 64 + ((c ^ block / 2) % 4) * 16;
  }
  __device__ __forceinline__ void store(int token, int output, float value) const {
    ptx::store_shared(chunk(token, output / 16, output / 4 % 4) + output % 4 * 4, __float_as_uint(value));
  }
};

template <class Config, Gelu kGelu>
__device__ __forceinline__ void store_hidden(const float (&d)[4 * Config::kGroups], const Scales& scales,
                                             const FewHidden<Config>& hidden, int rows, int output) {
#pragma unroll
  for (int n = 0; n < Config::kGroups; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int token = 8 * n + threadIdx.x % 4 * 2 + e;
      if (token >= rows) continue;
      hidden.store(token, output,
                   hidden_of<kGelu>(device::sum_of(d[4 * n + e]), device::sum_of(d[4 * n + 2 + e]), scales));
    }
  }
}

// A block of 16 a quad.
template <class Config>
__device__ __forceinline__ void quantise_hidden(const Output& out, const numerics::Nvfp4Encoder& encoder,
                                                const FewHidden<Config>& hidden) {
  constexpr int kBlocks = Config::Stage::kPairs / numerics::kNvfp4Block;
  const auto first_block = static_cast<int32_t>(blockIdx.x) * kBlocks;
  const int items = static_cast<int>(out.rows) * kBlocks;
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int first = threadIdx.x / 32 * 8; first < items; first += 8 * Config::kWarps) {
    const int item = min(first + lane / 4, items - 1);
    const int token = item / kBlocks;
    const int block = item % kBlocks;
    float values[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      values[n] = __uint_as_float(ptx::load_shared(hidden.chunk(token, block, n) + lane % 4 * 4));
    }
    uint32_t codes[2];
    const uint8_t scale = device::encode_nvfp4_quad(encoder, values, codes);
    if (first + lane / 4 >= items || first_block + block >= out.blocks) continue;
    if (lane % 4 == 0) store_codes(out, token, first_block + block, codes);
    if (lane % 4 == 1) store_scale(out, token, first_block + block, scale);
  }
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    nvfp4_geglu_few(const __grid_constant__ TensorMap codes, const __grid_constant__ FewJob job) {
  extern __shared__ unsigned char memory[];
  const device::Nvfp4FewShared<Config> shared(ptx::shared_address(memory));
  const device::Ring<Config::kStages> ring(shared.barriers);
  const Operands& operands = job.operands;
  device::Nvfp4FewTokens<Config> tokens;
  const int warp = device::begin_few_rows<Config>(&codes, job.plan, ring, shared, operands.x, tokens, [&] {
    clear_padding(operands.out, int64_t{blockIdx.x} * 32 + threadIdx.x % 32, int64_t{gridDim.x} * 32);
  });
  if (warp == Config::kWarps) return;
  constexpr uint32_t kAll = 1;  // the barrier of the multiplying warps
  constexpr int kThreads = 32 * Config::kWarps;
  tokens.unpack(operands.x, shared.x, job.plan.steps);
  const Scales scales = operands.scales.all();
  device::Nvfp4FewWeights<typename Config::Stage> weights(
      shared.stages, shared.decoded + warp * Config::Stage::kDecodedWarp, 8 * warp);
  ptx::barrier_sync(kAll, kThreads);
  float d[4 * Config::kGroups] = {};
  device::multiply_few_rows<Config>(job.plan, ring, shared, weights, d);
  ptx::barrier_sync(kAll, kThreads);  // x has been read
  const FewHidden<Config> hidden = {shared.x};
  const int rows = static_cast<int>(operands.out.rows);
  if (operands.gelu == Gelu::kTanh) {
    store_hidden<Config, Gelu::kTanh>(d, scales, hidden, rows, weights.pair());
  } else {
    store_hidden<Config, Gelu::kErf>(d, scales, hidden, rows, weights.pair());
  }
  ptx::barrier_sync(kAll, kThreads);
  quantise_hidden<Config>(operands.out, scales.out, hidden);
}

}  // namespace isobit::nvfp4_geglu::sm90
