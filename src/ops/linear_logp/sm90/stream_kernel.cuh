// linear_logp for up to 64 rows on SM90: bound by reading W once.
//
//   weight ---\               7 to 11 stages                     registers          shared memory
//              > copy engine -> [128 x 64 weight | n x 64 hidden] -> wgmma 2 x m64nNk16 -> [token][id] logits
//   hidden ---/                                                                             |
//                                         slot of the leaf per token <- one warp a token <--/
//
// The ids are the M operand: a tile is 128 ids, one leaf, and the tokens fill an n of 8 to 64. Swapping the operands
// changes no bit of a product. The two multiplying warpgroups take tiles in turn, so the stream of W never stops for an
// epilogue. Barriers as in kernel.cuh; named barrier 3 + group keeps a warpgroup together around its transposition.
#pragma once

#include "ops/linear_logp/cuda/fragment.cuh"
#include "ops/linear_logp/sm90/pipeline.cuh"

namespace isobit::linear_logp::sm90 {

struct StreamSchedule {
  int32_t tiles;
  int32_t steps;  // stages per tile
};

template <class Config>
__device__ __forceinline__ void stream_weight(const TensorMap* hidden, const TensorMap* weight, const Job& job,
                                              const StreamSchedule& schedule, const device::Ring<Config::kStages>& ring,
                                              uint32_t stages) {
  device::RingPosition<Config::kStages> at;
  const int32_t origin_row = static_cast<int32_t>(job.origin - job.p.first_id);
  for (int tile = blockIdx.x; tile < schedule.tiles; tile += gridDim.x) {
    for (int step = 0; step < schedule.steps; ++step) {
      ring.acquire(at, Config::kStageBytes);
      const uint32_t stage = stages + at.stage * Config::kStageBytes;
      const uint32_t full = ring.full(at.stage);
      ptx::tma_load_2d(stage, weight, full, step * kDepth, origin_row + tile * Config::kIds, ptx::L2Hint::kEvictFirst);
      ptx::tma_load_2d(stage + Config::kWeightBytes, hidden, full, step * kDepth, 0, ptx::L2Hint::kEvictLast);
      at.advance();
    }
  }
}

// Accumulators of tokens [first, first + kTurnTokens) to rows of logits by token.
template <class Config>
__device__ __forceinline__ void transpose(const float (&d)[2][Config::kTokens / 2], int first, float* logits) {
  const int lane = threadIdx.x % cuda::kWarpThreads;
  const int id = threadIdx.x % kWarpgroup / cuda::kWarpThreads * 16 + lane / 4;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int j = 0; j < Config::kTurnTokens / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float* const token = logits + (8 * j + 2 * (lane % 4) + e) * Config::kPitch + 64 * m + id;
        token[0] = d[m][4 * (first / 8 + j) + e];
        token[8] = d[m][4 * (first / 8 + j) + e + 2];
      }
    }
  }
}

// Counts of the leaf's ids that rank before each target of the row.
__device__ __forceinline__ void count_leaf_ranks(const Job& job, const float (&z)[4], const bool (&exists)[4],
                                                 int64_t first_id, int32_t row) {
  for (int64_t k = 0; k < job.p.targets; ++k) {
    const int64_t target = cuda::target_at(job.p, row, k);
    if (!cuda::has_logit(job.p, target)) continue;
    const float target_z = job.rank_target.data[row * job.rank_target.row_stride + k * job.rank_target.column_stride];
    int count = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) count += exists[i] && ranks_before(z[i], first_id + 32 * i, target_z, target) ? 1 : 0;
    count = __reduce_add_sync(cuda::kWarp, count);
    if (threadIdx.x % cuda::kWarpThreads == 0 && count != 0) {
      atomicAdd(&job.rank.data[row * job.rank.row_stride + k * job.rank.column_stride], count);
    }
  }
}

// The leaf of one token from its 128 logits, by one warp.
template <Mode kMode>
__device__ __forceinline__ void finish_token(const Job& job, const float* logits, int32_t tile, int32_t row) {
  const Params& p = job.p;
  const int lane = threadIdx.x % cuda::kWarpThreads;
  const int64_t first = job.origin + int64_t{tile} * kLeaf;
  const int64_t id = first + cuda::leaf_offset(lane);
  float z[4];
  bool exists[4];
  bool plain = first >= job.whole_begin && first + kLeaf <= job.whole_end;
  const float temperature = kMode == Mode::kFull ? cuda::temperature_at(p, row) : 1.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    z[i] = logits[cuda::leaf_offset(lane) + 32 * i];
    exists[i] = id + 32 * i >= p.first_id && id + 32 * i < p.first_id + p.count;
    if (kMode == Mode::kFull && exists[i]) z[i] = cuda::logit(p, z[i], id + 32 * i, temperature);
    plain = plain && exists[i] && fabsf(z[i]) <= kPlainLimit;
  }
  if constexpr (kMode == Mode::kFull) {
    if (job.rank.data != nullptr) count_leaf_ranks(job, z, exists, id, row);
    if (job.top.logits != nullptr) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (exists[i]) job.top.logits[row * job.top.logits_stride + id + 32 * i] = z[i];
      }
#pragma unroll
      for (int u = 0; u < 2; ++u) {
        float largest = fmaxf(exists[2 * u] ? z[2 * u] : cuda::kMinusInfinity,
                              exists[2 * u + 1] ? z[2 * u + 1] : cuda::kMinusInfinity);
#pragma unroll
        for (int mask = 16; mask > 0; mask /= 2) {
          largest = fmaxf(largest, __shfl_xor_sync(cuda::kWarp, largest, mask));
        }
        const int64_t unit = 2 * int64_t{tile} + u;
        if (lane == u && unit < job.top.maxima_stride) {
          job.top.maxima[row * job.top.maxima_stride + unit] = largest;
        }
      }
    }
  }
  if (job.select_targets) {
    const int64_t target = cuda::target_at(p, row, 0);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (exists[i] && id + 32 * i == target) job.target_logit.data[row * job.target_logit.row_stride] = z[i];
    }
  }
  if (job.lead_leaf != nullptr && job.saved.lead[row] >= first && job.saved.lead[row] < first + kLeaf) {
#pragma unroll
    for (int i = 0; i < 4; ++i) job.lead_leaf[int64_t{row} * kLeaf + cuda::leaf_offset(lane) + 32 * i] = z[i];
  }
  constexpr bool kEntropy = kMode != Mode::kLogp;
  Node leaf;
  if (__all_sync(cuda::kWarp, plain)) {
    leaf = cuda::plain_leaf<kEntropy>(z);
  } else {
    if (job.raw != nullptr) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (exists[i] && cuda::is_raw(job.parts, id + 32 * i)) cuda::store_raw(job, id + 32 * i, row, z[i]);
      }
    }
    leaf = cuda::warp_leaf<kEntropy>(z, exists);
  }
  if (lane == 0) cuda::store_slot_of<kMode>(job.partials, tile, row, leaf);
}

template <class Format, Mode kMode, class Config>
__device__ __forceinline__ void multiply_stream(const Job& job, const StreamSchedule& schedule,
                                                const device::Ring<Config::kStages>& ring, uint32_t stages,
                                                float* turn_space) {
  const int group = threadIdx.x / kWarpgroup - 1;
  const int warp = threadIdx.x % kWarpgroup / cuda::kWarpThreads;
  float* const logits = turn_space + group * Config::kTurnTokens * Config::kPitch;
  const int rows = static_cast<int>(job.p.rows);
  device::RingPosition<Config::kStages> at;
  float d[2][Config::kTokens / 2];
  if (group == 1 && blockIdx.x < schedule.tiles) give_turn(0);
  int turn = 0;
  for (int tile = blockIdx.x; tile < schedule.tiles; tile += gridDim.x, turn ^= 1) {
    if (turn != group) {
      at.advance(schedule.steps);
      continue;
    }
    wait_turn(group);
    multiply_tile<Format>(d, ring, at, stages, Config::kStageBytes, 0, Config::kWeightBytes, schedule.steps, [&] {
      if (tile + static_cast<int>(gridDim.x) < schedule.tiles) give_turn(1 - group);
    });
    if constexpr (kMode == Mode::kFull) ptx::wait_for_previous_grid();  // that gathers targets
#pragma unroll
    for (int first = 0; first < Config::kTokens; first += Config::kTurnTokens) {
      if (first >= rows) break;
      ptx::barrier_sync(3 + group, kWarpgroup);  // the logits of the turn before have been read
      transpose<Config>(d, first, logits);
      ptx::barrier_sync(3 + group, kWarpgroup);
      for (int token = warp; token < Config::kTurnTokens && first + token < rows; token += 4) {
        finish_token<kMode>(job, logits + token * Config::kPitch, tile, first + token);
      }
    }
  }
}

template <class Format, Mode kMode, class Config>
__global__ void __launch_bounds__(kThreads, 1)
    stream_kernel(const __grid_constant__ TensorMap hidden, const __grid_constant__ TensorMap weight,
                  const __grid_constant__ Job job, const __grid_constant__ StreamSchedule schedule) {
  extern __shared__ unsigned char shared[];
  const uint32_t base = ptx::shared_address(shared);
  const uint32_t stages = (base + kSwizzleAlignment - 1) / kSwizzleAlignment * kSwizzleAlignment;
  float* const turn_space = reinterpret_cast<float*>(shared + (stages - base) + Config::kStages * Config::kStageBytes);
  const device::Ring<Config::kStages> ring(stages + Config::kStages * Config::kStageBytes + 2 * Config::kTurnBytes);
  if (threadIdx.x == 0) ring.initialise(kUsersOfStage);
  __syncthreads();
  ptx::launch_dependents();
  const int warpgroup = __shfl_sync(cuda::kWarp, threadIdx.x / kWarpgroup, 0);
  if (warpgroup == 0) {
    if (threadIdx.x == 0) stream_weight<Config>(&hidden, &weight, job, schedule, ring, stages);
  } else {
    multiply_stream<Format, kMode, Config>(job, schedule, ring, stages, turn_space);
  }
}

}  // namespace isobit::linear_logp::sm90
