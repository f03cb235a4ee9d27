// nvfp4_geglu with WGMMA: the pipeline of nvfp4/wgmma.cuh, whose thread has gate and up of an output beside each
// other, then
//
//   multiplying warpgroup: sums ── * scales ── gelu(gate) up ── fp32 ──> staging [tokens x 32 outputs] of the group
//   three spare warps:     16 outputs of a token ── largest ── scale, 16 codes ──> global memory, under the next tile
//
// After a block's last tile the multiplying warpgroups quantise what they staged themselves.
//   barrier        arrives                         waits
//   staged[group]  the group's threads             the spare warps
//   free[group]    the spare warps' threads        the group
#pragma once

#include "nvfp4/unpack.cuh"
#include "nvfp4/wgmma.cuh"
#include "ops/nvfp4_geglu/operands.cuh"

namespace isobit::nvfp4_geglu::sm90 {

namespace ptx = device::ptx;
using numerics::Gelu;

constexpr int kStagingRow = 32 * 4;  // bytes of a token in a group's staging
template <int kTokens, int kGroups>
using Config = device::Nvfp4WgmmaConfig<kTokens, kGroups, kStagingRow>;

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

// Blocks `first`, first + stride, ... of the staged tile.
template <class Config>
__device__ __forceinline__ void quantise_staged(const Job& job, const numerics::Nvfp4Encoder& encoder,
                                                const Staging& staging, const device::Nvfp4TilePlace& tile, int group,
                                                int first, int stride) {
  const int64_t first_token = int64_t{tile.token_tile} * Config::kTokens;
  const int32_t first_block = (tile.row_tile * Config::kPairs + 32 * group) / numerics::kNvfp4Block;
#pragma unroll 1
  for (int item = first; item < 2 * Config::kTokens; item += stride) {
    const int token = item / 2;
    const int half = item % 2;
    float hidden[numerics::kNvfp4Block];
#pragma unroll
    for (int chunk = 0; chunk < 4; ++chunk) {
      const float4 part = *reinterpret_cast<const float4*>(staging.at(token, 16 * half + 4 * chunk));
      hidden[4 * chunk] = part.x, hidden[4 * chunk + 1] = part.y;
      hidden[4 * chunk + 2] = part.z, hidden[4 * chunk + 3] = part.w;
    }
    const int64_t row = first_token + token;
    const int32_t block = first_block + half;
    if (row < job.unpack.rows && block < job.operands.out.blocks) {
      store_encoded(job.operands.out, encoder, job.unpack.first_row + row, block, hidden);
    }
  }
}

template <class Config, Gelu kGelu>
__device__ __forceinline__ void stage_hidden(const float (&d)[Config::kSums], const Scales& scales,
                                             const Staging& staging, int output) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < Config::kTokens / 8; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      *staging.at(8 * j + 2 * (lane % 4) + e, output) = hidden_of<kGelu>(d[4 * j + e], d[4 * j + 2 + e], scales);
    }
  }
}

// The barriers of a group's staging, and the parity of the turn.
struct Turn {
  uint32_t staged, free;
  uint32_t parity = 0;
};

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

constexpr int kSpareWarps = 3;

template <class Config>
__device__ __forceinline__ void quantise_tiles(const Job& job, const Block<Config>& block, int spare_warp) {
  const int lane = threadIdx.x % 32;
  const numerics::Nvfp4Encoder encoder = numerics::nvfp4_encoder(job.operands.scales.out());
  uint32_t parity = 0;
  device::for_each_tile(job.plan, [&](const device::Nvfp4TilePlace& tile) {
    if (tile.last) return;
    for (int group = 0; group < Config::kGroups; ++group) {
      wait_turn(block.staged(group), parity);
      quantise_staged<Config>(job, encoder, block.group_staging(group), tile, group, 32 * spare_warp + lane,
                              32 * kSpareWarps);
      ptx::mbarrier_arrive(block.free(group));
    }
    parity ^= 1;
  });
}

template <class Config>
__device__ __forceinline__ void multiply_tiles(const Job& job, const Block<Config>& block,
                                               const device::Ring<Config::kStages>& ring, int group) {
  const Scales scales = job.operands.scales.all();
  const Staging staging = block.group_staging(group);
  uint32_t parity = 1;  // the staging is free at first
  device::multiply_nvfp4<Config>(job.plan, ring, block.shared, group,
                                 [&](const device::Nvfp4TilePlace& tile, int pair, const float(&d)[Config::kSums]) {
                                   wait_turn(block.free(group), parity);
                                   parity ^= 1;
                                   if (job.operands.gelu == Gelu::kTanh) {
                                     stage_hidden<Config, Gelu::kTanh>(d, scales, staging, pair % 32);
                                   } else {
                                     stage_hidden<Config, Gelu::kErf>(d, scales, staging, pair % 32);
                                   }
                                   if (tile.last) {
                                     ptx::barrier_sync(device::kNvfp4GroupBarrier + group, Config::kWarpgroup);
                                     quantise_staged<Config>(job, scales.out, staging, tile, group,
                                                             threadIdx.x % Config::kWarpgroup, Config::kWarpgroup);
                                   } else {
                                     ptx::mbarrier_arrive(block.staged(group));
                                   }
                                 });
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, 1)
    nvfp4_geglu_wgmma(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap codes,
                      const __grid_constant__ Job job) {
  extern __shared__ unsigned char memory[];
  const Block<Config> block(memory);
  const device::Ring<Config::kStages> ring(block.shared.barriers);
  if (threadIdx.x == 0) {
    for (int group = 0; group < Config::kGroups; ++group) {
      ptx::mbarrier_init(block.staged(group), Config::kWarpgroup);
      ptx::mbarrier_init(block.free(group), 32 * kSpareWarps);
    }
    ring.initialise(Config::kGroups * Config::kWarpgroup / 32);
  }
  __syncthreads();
  // From one lane, so that the compiler sees a branch that is uniform in the warp.
  const int warpgroup = __shfl_sync(0xFFFFFFFFu, threadIdx.x / Config::kWarpgroup, 0);
  if (warpgroup == 0) {
    if constexpr (Config::kMovesRegisters) ptx::release_registers<Config::kSpareRegisters>();
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) device::copy_nvfp4(&x, &codes, job.plan, ring, block.shared);
    if (warp > 0) {
      // Before there is anything to quantise. What came before the unpacking kernel is done with these bytes.
      constexpr int kSpareThreads = 32 * kSpareWarps;
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
