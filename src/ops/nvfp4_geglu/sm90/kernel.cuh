// nvfp4_geglu with WGMMA: the pipeline of nvfp4/wgmma.cuh, whose thread has gate and up of an output beside each
// other, then
//
//   multiplying warpgroup: sums ── * scales ── gelu(gate) up ── fp32 ──> staging [tokens x 32 outputs] of the group
//   three spare warps:     16 outputs of a token ── largest ── scale, 16 codes ──> global memory, under the next tile
//
// After a block's last tile the multiplying warpgroups quantise what they staged themselves.
//   barrier             arrives                              waits
//   staged[group]       the group's threads                  the spare warps
//   free[group]         the spare warps' threads             the group
//   group, by number    the spare warps (the table is full)  the group, each other, before it quantises the last tile
#pragma once

#include "nvfp4/unpack.cuh"
#include "nvfp4/wgmma.cuh"
#include "ops/nvfp4_geglu/operands.cuh"

namespace isobit::nvfp4_geglu::sm90 {

namespace ptx = device::ptx;
using numerics::Gelu;

constexpr int kStagingRow = 32 * 4;        // bytes of a token in a group's staging
constexpr int kMultiplierBytes = 128 * 4;  // the multiplier of every block scale
template <int kTokens, int kGroups, int kLastTokens>
using Config = device::Nvfp4WgmmaConfig<kTokens, kGroups, kLastTokens, kStagingRow, kMultiplierBytes>;

struct Job {
  device::Nvfp4WgmmaPlan plan;
  device::Nvfp4Unpack unpack;
  Operands operands;
};

__global__ void __launch_bounds__(256) nvfp4_geglu_unpack(const __grid_constant__ Job job) {
  ptx::launch_dependents();
  device::unpack_nvfp4_half(job.operands.x, job.unpack, int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
}

// Staging of one group: rows of 128 bytes, a token each; 16-byte chunk c of token t lies at c ^ t % 8, so that neither
// the fragment's columns nor the blocks of 16 meet in a bank.
struct Staging {
  float* words;
  __device__ __forceinline__ float* at(int token, int output) const {
    return words + token * 32 + ((output / 4 ^ token % 8) * 4 + output % 4);
  }
};

// The quantiser's rule for this call. A division a block is looked up: a scale has 128 values.
struct Quantiser {
  numerics::Nvfp4Encoder encoder;
  uint32_t multipliers;  // address of the table

  __device__ __forceinline__ void fill(int thread, int threads) const {
    for (int scale = thread; scale < 128; scale += threads) {
      const float multiplier = device::nvfp4_multiplier_of(encoder, static_cast<uint8_t>(scale));
      ptx::store_shared(multipliers + 4 * scale, __float_as_uint(multiplier));
    }
  }
  __device__ __forceinline__ uint8_t operator()(float (&x)[numerics::kNvfp4Block], uint32_t (&codes)[2]) const {
    const auto multiplier_of = [&](uint8_t scale) {
      return __uint_as_float(ptx::load_shared(multipliers + 4 * scale));
    };
    return device::encode_nvfp4<device::Nvfp4Clamp::kIfNeeded>(encoder, multiplier_of, x, codes);
  }
};

// Blocks `first`, first + stride, ... of the staged tile: half a token each. The stride is a multiple of 16, so that a
// thread keeps its half and its places in a row, and nothing is computed about them in the loop.
template <class Config>
__device__ __forceinline__ void quantise_staged(const Job& job, const Quantiser& quantise, const Staging& staging,
                                                const device::Nvfp4TilePlace& tile, int group, int first, int stride) {
  const Output& out = job.operands.out;
  const int half = first % 2;
  const int32_t block = (tile.row_tile * Config::kPairs + 32 * group) / numerics::kNvfp4Block + half;
  const int32_t rows = static_cast<int32_t>(job.unpack.rows) - tile.first_token;
  const int tokens = block < out.blocks ? min(tile.tokens, rows) : 0;
  const auto first_row = static_cast<uint32_t>(job.unpack.first_row) + tile.first_token;
  const BlockPlaces places(out, block);
  const int step = stride / 2;
  int token = first / 2;
  const float* from[4];
#pragma unroll
  for (int chunk = 0; chunk < 4; ++chunk) from[chunk] = staging.at(token, 16 * half + 4 * chunk);
  uint8_t* codes_to = places.codes(first_row + token);
#pragma unroll 1
  for (; token < tokens; token += step) {
    float hidden[numerics::kNvfp4Block];
#pragma unroll
    for (int chunk = 0; chunk < 4; ++chunk) {
      const float4 part = *reinterpret_cast<const float4*>(from[chunk]);
      hidden[4 * chunk] = part.x, hidden[4 * chunk + 1] = part.y;
      hidden[4 * chunk + 2] = part.z, hidden[4 * chunk + 3] = part.w;
      from[chunk] += step * 32;
    }
    uint32_t codes[2];
    *places.scale(first_row + token) = quantise(hidden, codes);
    device::store_nvfp4_codes(codes_to, out.vector_stores, codes);
    codes_to += step * out.codes_row_bytes;
  }
}

template <Gelu kGelu, int kSums>
__device__ __forceinline__ void stage_hidden(const float (&d)[kSums], const Scales& scales, const Staging& staging,
                                             int output) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < kSums / 4; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      *staging.at(8 * j + 2 * (lane % 4) + e, output) = hidden_of<kGelu>(d[4 * j + e], d[4 * j + 2 + e], scales);
    }
  }
}

__device__ __forceinline__ void wait_turn(uint32_t barrier, uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

template <class Config>
struct Block {
  device::Nvfp4Shared<Config> shared;
  unsigned char* staging;

  __device__ __forceinline__ explicit Block(unsigned char* memory) : shared(ptx::shared_address(memory)) {
    staging = memory + (shared.staging - ptx::shared_address(memory));
  }
  __device__ __forceinline__ Staging group_staging(int group) const {
    return {reinterpret_cast<float*>(staging + group * Config::kStagingGroup)};
  }
  __device__ __forceinline__ uint32_t staged(int group) const { return shared.epilogue_barriers + 16 * group; }
  __device__ __forceinline__ uint32_t free(int group) const { return staged(group) + 8; }
};

constexpr int kSpareThreads = 3 * 32;

// Named barriers: kGroupBarrier + group, and that of the spare warps.
constexpr uint32_t kGroupBarrier = 1;
constexpr uint32_t kSpareBarrier = 8;

template <class Config>
__device__ __forceinline__ void quantise_tiles(const Job& job, const Block<Config>& block, int spare_warp) {
  const int lane = threadIdx.x % 32;
  const Quantiser quantiser = {job.operands.scales.all().out, block.shared.more};
  quantiser.fill(32 * spare_warp + lane, kSpareThreads);
  ptx::barrier_sync(kSpareBarrier, kSpareThreads);
  for (int group = 0; group < Config::kGroups; ++group) {
    ptx::barrier_arrive(kGroupBarrier + group, Config::kWarpgroup + kSpareThreads);
  }
  uint32_t parity = 0;
  device::for_each_tile<Config>(job.plan, [&](const device::Nvfp4TilePlace& tile, auto) {
    if (tile.last) return;
    for (int group = 0; group < Config::kGroups; ++group) {
      wait_turn(block.staged(group), parity);
      quantise_staged<Config>(job, quantiser, block.group_staging(group), tile, group, 32 * spare_warp + lane,
                              kSpareThreads);
      ptx::mbarrier_arrive(block.free(group));
    }
    parity ^= 1;
  });
}

template <class Config>
__device__ __forceinline__ void multiply_tiles(const Job& job, const Block<Config>& block,
                                               const device::Ring<Config::kStages>& ring, int group) {
  const Scales scales = job.operands.scales.all();
  const Quantiser quantiser = {scales.out, block.shared.more};
  const Staging staging = block.group_staging(group);
  uint32_t parity = 1;  // the staging is free at first
  device::multiply_nvfp4<Config>(job.plan, ring, block.shared, group,
                                 [&](const device::Nvfp4TilePlace& tile, int pair, const auto& d) {
                                   wait_turn(block.free(group), parity);
                                   parity ^= 1;
                                   if (job.operands.gelu == Gelu::kTanh) {
                                     stage_hidden<Gelu::kTanh>(d, scales, staging, pair % 32);
                                   } else {
                                     stage_hidden<Gelu::kErf>(d, scales, staging, pair % 32);
                                   }
                                   if (tile.last) {
                                     ptx::barrier_sync(kGroupBarrier + group, Config::kWarpgroup + kSpareThreads);
                                     quantise_staged<Config>(job, quantiser, staging, tile, group,
                                                             threadIdx.x % Config::kWarpgroup, Config::kWarpgroup);
                                   } else {
                                     ptx::mbarrier_arrive(block.staged(group));
                                   }
                                 });
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    nvfp4_geglu_wgmma(const __grid_constant__ device::Nvfp4WgmmaMaps maps, const __grid_constant__ Job job) {
  extern __shared__ unsigned char memory[];
  const Block<Config> block(memory);
  const device::Ring<Config::kStages> ring(block.shared.barriers);
  if (threadIdx.x == 0) {
    for (int group = 0; group < Config::kGroups; ++group) {
      ptx::mbarrier_init(block.staged(group), Config::kWarpgroup);
      ptx::mbarrier_init(block.free(group), kSpareThreads);
    }
    ring.initialise(Config::kGroups * Config::kWarpgroup / 32);
  }
  __syncthreads();
  // From one lane, so that the compiler sees a branch that is uniform in the warp.
  const int warpgroup = __shfl_sync(0xFFFFFFFFu, threadIdx.x / Config::kWarpgroup, 0);
  if (warpgroup == 0) {
    if constexpr (Config::kMovesRegisters) ptx::release_registers<Config::kSpareRegisters>();
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) device::copy_nvfp4(maps, job.plan, ring, block.shared);
    if (warp > 0) {
      // Before there is anything to quantise. What came before the unpacking kernel is done with these bytes.
      if (job.unpack.first_row == 0) {
        clear_padding(job.operands.out, int64_t{blockIdx.x} * kSpareThreads + threadIdx.x - 32,
                      int64_t{gridDim.x} * kSpareThreads);
      }
      quantise_tiles(job, block, warp - 1);
    }
  } else {
    if constexpr (Config::kMovesRegisters) ptx::claim_registers<Config::kMultiplyRegisters>();
    multiply_tiles(job, block, ring, warpgroup - 1);
  }
}

}  // namespace isobit::nvfp4_geglu::sm90
