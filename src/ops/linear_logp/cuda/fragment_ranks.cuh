// How many ids of a fragment rank before each target of its rows.
#pragma once

#include "ops/linear_logp/cuda/fragment_logits.cuh"
#include "ops/linear_logp/finish.h"

namespace isobit::linear_logp::cuda {

// The largest value below x, which is neither NaN nor -inf: z >= x is z > just_below(x).
__device__ __forceinline__ float just_below(float x) {
  if (x == 0.0f) return -0x1p-149f;
  const uint32_t bits = numerics::float_bits(x);
  return numerics::bits_float(x > 0.0f ? bits - 1 : bits + 1);
}

// A row's target number k as a count sees it. Without a row or a logit nothing ranks before it.
struct RankedTarget {
  bool counts;
  uint32_t id;
  float z;
};
__device__ __forceinline__ RankedTarget ranked_target(const Job& job, int32_t row, int32_t k) {
  if (row >= job.p.rows) return {false, 0, -kMinusInfinity};
  const int64_t id = target_at(job.p, row, k);
  if (!has_logit(job.p, id)) return {false, 0, -kMinusInfinity};
  const Matrix<float>& logit = job.rank_target;
  return {true, static_cast<uint32_t>(id), logit.data[row * logit.row_stride + k * logit.column_stride]};
}

// By one lane of a quad, the quad's sum.
__device__ __forceinline__ void add_to_rank(const Job& job, int32_t row, int32_t k, int count) {
  count += __shfl_xor_sync(kWarp, count, 1);
  count += __shfl_xor_sync(kWarp, count, 2);
  if (threadIdx.x % 4 != 0 || count == 0 || row >= job.p.rows) return;
  atomicAdd(&job.rank.data[row * job.rank.row_stride + k * job.rank.column_stride], count);
}

// Ids before target k in a fragment that holds it for some row: one unit and row at a time.
template <int kUnits>
__device__ __forceinline__ void count_through_column(const Job& job, const float (&d)[32 * kUnits], const Place& place,
                                                     int32_t k) {
  const auto begin = static_cast<uint32_t>(job.p.first_id);
  const auto ids = static_cast<uint32_t>(job.p.count);
#pragma unroll 1
  for (int index = 0; index < 2 * kUnits; ++index) {
    to_column<kUnits>(d, index, place.column);
    const int32_t row = place.row + 8 * (index / kUnits);
    const RankedTarget target = ranked_target(job, row, k);
    // Ids from the range's first on; those before it are huge, and those behind it are no less than `ties`.
    const uint32_t first = static_cast<uint32_t>(place.id) - begin + 64 * (index % kUnits) + 2 * (threadIdx.x % 4);
    const uint32_t ties = target.id <= begin ? 0 : min(target.id - begin, ids);
    int count = 0;
#pragma unroll 1
    for (int word = 0; word < kColumnWords; ++word) {
      const float z = place.column[word * kWarpThreads];
      count += z > target.z || (z == target.z && first + 8 * (word / 2) + word % 2 < ties) ? 1 : 0;
    }
    add_to_rank(job, row, k, count);
  }
}

// Adds the fragment's ids that rank before each target of its rows; ids that do not exist are -inf. Where all ids lie
// on one side of a row's target, equal logits all count or none does, so one comparison a logit is enough. NaN rows
// count garbage; their rank is -1.
template <int kUnits>
__device__ __forceinline__ void count_ranks(const Job& job, const float (&d)[32 * kUnits], const Place& place) {
  const auto first = static_cast<uint32_t>(place.id);
#pragma unroll 1
  for (int32_t k = 0; k < job.p.targets; ++k) {
    bool beside = true;
#pragma unroll 1
    for (int h = 0; h < 2; ++h) {
      const RankedTarget target = ranked_target(job, place.row + 8 * h, k);
      const bool outside = target.id < first || target.id >= first + 64 * kUnits;
      beside = beside && (!target.counts || (outside && target.z > kMinusInfinity));
    }
    if (!__all_sync(kWarp, beside)) {
      count_through_column<kUnits>(job, d, place, k);
      continue;
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const RankedTarget target = ranked_target(job, place.row + 8 * h, k);
      const float threshold = target.id > first ? just_below(target.z) : target.z;
      uint32_t count = 0;
#pragma unroll
      for (int j = 0; j < 8 * kUnits; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          // The sign of an exact zero is plus, and no difference underflows to one: two instructions a logit.
          count += numerics::float_bits(numerics::sub_rn(threshold, d[4 * j + 2 * h + e])) >> 31;
        }
      }
      add_to_rank(job, place.row + 8 * h, k, static_cast<int>(count));
    }
  }
}

}  // namespace isobit::linear_logp::cuda
