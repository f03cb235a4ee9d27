// A fragment's place, and what its logits go through before they are reduced: options, targets, the top list's memory.
#pragma once

#include "device/ptx/arithmetic.cuh"
#include "numerics/divisor.h"
#include "ops/linear_logp/cuda/logit.cuh"
#include "ops/linear_logp/cuda/unit_sum.cuh"

namespace isobit::linear_logp::cuda {

// Where a warp's fragment lies. Rows and ids are below 2^31.
struct Place {
  int32_t row;    // of the chunk, this lane's first row; the second is row + 8
  int32_t id;     // global id of the fragment's first column
  float* column;  // this lane's words in shared memory, kWarpThreads apart; two warps' lanes never share
  bool whole;     // all columns lie in [Job::whole_begin, Job::whole_end); those of absent ids are zeros
  int ragged;     // number of the unit of the fragment that starts at Job::ragged_id; negative if none does
};

// `id`: of the fragment's first column.
template <int kUnits>
__device__ __forceinline__ Place place_of(const Job& job, int64_t id, float* column) {
  Place place;
  place.row = 0;
  place.id = static_cast<int32_t>(id);
  place.column = column;
  place.whole = id >= job.whole_begin && id + 64 * kUnits <= job.whole_end;
  const int64_t offset = job.ragged_id - id;
  place.ragged = job.ragged_id >= 0 && offset >= 0 && offset < 64 * kUnits ? static_cast<int>(offset / 64) : -1;
  return place;
}
constexpr int kColumnWords = 16;
constexpr int kLeafBits = 7;
static_assert(kLeaf == 1 << kLeafBits);

// The logit of a target that lies in this fragment goes to the workspace: selected, never computed again.
template <int kUnits>
__device__ __forceinline__ void select_targets(const Job& job, const float (&d)[32 * kUnits], const Place& place) {
  const int q = threadIdx.x % 4;
  int column[2];
  bool here[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int32_t row = place.row + 8 * h;
    const int64_t offset = row < job.p.rows ? target_at(job.p, row, 0) - place.id : -1;
    here[h] = offset >= 0 && offset < 64 * kUnits && (offset & 7) >> 1 == q;
    column[h] = static_cast<int>(offset);
  }
  // About one tile in forty holds a target of a given warp.
  if (!__any_sync(kWarp, here[0] || here[1])) return;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float z = 0.0f;
#pragma unroll
    for (int j = 0; j < 8 * kUnits; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) z = column[h] == 8 * j + 2 * q + e ? d[4 * j + 2 * h + e] : z;
    }
    if (here[h]) job.target_logit.data[int64_t{place.row + 8 * h} * job.target_logit.row_stride] = z;
  }
}

// One unit of one row half, the fragment's number `index` of both, between registers and the column. Rolled loops run
// around it: only the copies name registers.
template <int kUnits>
__device__ __forceinline__ void to_column(const float (&d)[32 * kUnits], int index, float* column) {
#pragma unroll
  for (int i = 0; i < 2 * kUnits; ++i) {
    if (i != index) continue;
#pragma unroll
    for (int word = 0; word < kColumnWords; ++word) {
      column[word * kWarpThreads] = d[32 * (i % kUnits) + 4 * (word / 2) + 2 * (i / kUnits) + word % 2];
    }
  }
}
template <int kUnits>
__device__ __forceinline__ void from_column(float (&d)[32 * kUnits], int index, const float* column) {
#pragma unroll
  for (int i = 0; i < 2 * kUnits; ++i) {
    if (i != index) continue;
#pragma unroll
    for (int word = 0; word < kColumnWords; ++word) {
      d[32 * (i % kUnits) + 4 * (word / 2) + 2 * (i / kUnits) + word % 2] = column[word * kWarpThreads];
    }
  }
}

// Divides all logits by their rows' temperatures where a shared divisor can; false, and nothing is
// changed, where it cannot.
template <int kUnits>
__device__ __forceinline__ bool divide_logits(const Job& job, float (&d)[32 * kUnits], const Place& place) {
  const auto temperature = [&](int32_t row) { return row < job.p.rows ? temperature_at(job.p, row) : 1.0f; };
  const numerics::Divisor first(temperature(place.row));
  const numerics::Divisor second(temperature(place.row + 8));
  numerics::DividendRange range;
#pragma unroll
  for (int i = 0; i < 32 * kUnits; ++i) {
    range.largest = device::ptx::max_nan(range.largest, fabsf(d[i]));
    range.least = min(range.least, 2 * numerics::float_bits(d[i]) - 1);
  }
  if (!__all_sync(kWarp, first.usable() && second.usable() && range.usable())) return false;
#pragma unroll
  for (int i = 0; i < 32 * kUnits; ++i) d[i] = i % 4 < 2 ? first.divide(d[i]) : second.divide(d[i]);
  return true;
}

// Bias, softcap and temperature on all logits of existing rows and ids.
template <int kUnits>
__device__ __forceinline__ void finish_logits(const Job& job, float (&d)[32 * kUnits], const Place& place) {
  if (job.p.bias == nullptr && job.p.softcap == 0.0f && divide_logits<kUnits>(job, d, place)) return;
  constexpr int kTogether = 4;  // independent logits: a division and a tanh are long chains
  const int64_t end = job.p.first_id + job.p.count;
#pragma unroll 1
  for (int index = 0; index < 2 * kUnits; ++index) {
    const int32_t row = place.row + 8 * (index / kUnits);
    const int64_t first_id = place.id + 64 * (index % kUnits) + 2 * static_cast<int>(threadIdx.x % 4);
    const float temperature = row < job.p.rows ? temperature_at(job.p, row) : 1.0f;
    to_column<kUnits>(d, index, place.column);
#pragma unroll 1
    for (int word = 0; word < kColumnWords; word += kTogether) {
      float z[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int64_t id = first_id + 8 * ((word + i) / 2) + (word + i) % 2;
        z[i] = place.column[(word + i) * kWarpThreads];
        if (id >= job.p.first_id && id < end) z[i] = logit(job.p, z[i], id, temperature);
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i) place.column[(word + i) * kWarpThreads] = z[i];
    }
    from_column<kUnits>(d, index, place.column);
  }
}

// All logits of the fragment to the top list's memory.
template <int kUnits>
__device__ __forceinline__ void store_logits(const Job& job, const float (&d)[32 * kUnits], const Place& place) {
  const int64_t first = place.id + 2 * static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int32_t row = place.row + 8 * h;
    if (row >= job.p.rows) continue;
    float* const to = job.top.logits + row * job.top.logits_stride + first;
#pragma unroll
    for (int j = 0; j < 8 * kUnits; ++j) {
      if (first + 8 * j >= job.p.vocab) continue;
      // The odd id of the last pair may not exist; its place does.
      *reinterpret_cast<float2*>(to + 8 * j) = make_float2(d[4 * j + 2 * h], d[4 * j + 2 * h + 1]);
    }
  }
}

// The logits of the leaf that holds a row's lead, as far as they are here, go to the workspace.
template <int kUnits>
__device__ __forceinline__ void keep_lead_leaf(const Job& job, const float (&d)[32 * kUnits], const Place& place) {
  const auto leaf_of = [&](int h) {
    const int32_t row = place.row + 8 * h;
    return row < job.p.rows ? job.saved.lead[row] >> kLeafBits : -1;
  };
  const int32_t first = place.id >> kLeafBits;
  const int32_t last = (place.id + 64 * kUnits - 1) >> kLeafBits;
  const auto near = [&](int32_t leaf) { return leaf >= first && leaf <= last; };
  if (!__any_sync(kWarp, near(leaf_of(0)) || near(leaf_of(1)))) return;
#pragma unroll 1
  for (int index = 0; index < 2 * kUnits; ++index) {
    const int32_t id = place.id + 64 * (index % kUnits);
    to_column<kUnits>(d, index, place.column);
    if (leaf_of(index / kUnits) != id >> kLeafBits) continue;
    const int64_t row = place.row + 8 * (index / kUnits);
    float* const to = job.lead_leaf + row * kLeaf + id % kLeaf + 2 * static_cast<int>(threadIdx.x % 4);
#pragma unroll 1
    for (int word = 0; word < kColumnWords; ++word) to[word / 2 * 8 + word % 2] = place.column[word * kWarpThreads];
  }
}

}  // namespace isobit::linear_logp::cuda
