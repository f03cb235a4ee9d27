// A fragment's place, and who takes its finished logits beside the reduction: targets, the top list, the lead's leaf.
#pragma once

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
// place.whole and no ragged unit, found when it is needed: kFull has no registers to keep them in. Ids, and what is up
// to a tile beyond them, are below 2^32.
template <int kUnits>
__device__ __forceinline__ bool has_no_border(const Job& job, const Place& place) {
  const auto id = static_cast<uint32_t>(place.id);
  const uint32_t offset = static_cast<uint32_t>(job.ragged_id) - id;
  const bool whole =
      id >= static_cast<uint32_t>(job.whole_begin) && id + 64 * kUnits <= static_cast<uint32_t>(job.whole_end);
  const int ragged = job.ragged_id >= 0 && offset < 64 * kUnits ? static_cast<int>(offset / 64) : -1;
  return whole && ragged < 0;
}

// Always true, which the compiler cannot know: what depends on it becomes a block of its own, and ptxas orders
// instructions within blocks. In one block with what follows, it finishes one chain of dependent instructions before it
// starts the next: 3.1 cycles an instruction, counted in the machine code of CUDA 13.0. By itself and in place 16
// logits take 1.6 to 2.0.
__device__ __forceinline__ bool is_launched(const Job& job, int step) {
  constexpr int kMostSteps = 64;
  return job.p.rows > step - kMostSteps;
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

// Every logit through the column and back. `change` gets up to kTogether logits of a row, the row, and the id of the
// first; i further they belong to that id + i % 2 + 8 * (i / 2).
template <int kUnits, int kTogether, class Change>
__device__ __forceinline__ void change_logits(float (&d)[32 * kUnits], const Place& place, Change change) {
#pragma unroll 1
  for (int index = 0; index < 2 * kUnits; ++index) {
    const uint32_t first = static_cast<uint32_t>(place.id) + 64 * (index % kUnits) + 2 * (threadIdx.x % 4);
    to_column<kUnits>(d, index, place.column);
#pragma unroll 1
    for (int word = 0; word < kColumnWords; word += kTogether) {
      float z[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) z[i] = place.column[(word + i) * kWarpThreads];
      change(z, place.row + 8 * (index / kUnits), first + 8 * (word / 2) + word % 2);
#pragma unroll
      for (int i = 0; i < kTogether; ++i) place.column[(word + i) * kWarpThreads] = z[i];
    }
    from_column<kUnits>(d, index, place.column);
  }
}

// Ids that do not exist become -inf, where they count for nothing.
template <int kUnits>
__device__ __forceinline__ void mask_absent(const Job& job, float (&d)[32 * kUnits], const Place& place) {
  const auto begin = static_cast<uint32_t>(job.p.first_id);
  const auto ids = static_cast<uint32_t>(job.p.count);
  const uint32_t offset = static_cast<uint32_t>(place.id) - begin;
  if (offset < ids && ids - offset >= 64 * kUnits) return;
  change_logits<kUnits, 1>(d, place, [&](float(&z)[1], int32_t, uint32_t id) {
    if (id - begin >= ids) z[0] = kMinusInfinity;
  });
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

// The largest logit of each unit to the top list's memory; ids that do not exist are -inf. A row with a NaN lists
// nothing, so its maxima are free.
template <int kUnits>
__device__ __forceinline__ void store_maxima(const Job& job, const float (&d)[32 * kUnits], const Place& place) {
  const int q = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float mine = kMinusInfinity;  // of unit number q
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      float largest = kMinusInfinity;
#pragma unroll
      for (int i = 0; i < kColumnWords; ++i) largest = fmaxf(largest, d[32 * u + 4 * (i / 2) + 2 * h + i % 2]);
      largest = fmaxf(largest, __shfl_xor_sync(kWarp, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kWarp, largest, 2));
      if (u == q) mine = largest;
    }
    const int32_t row = place.row + 8 * h;
    const int64_t unit = place.id / kUnit + q;
    if (q >= kUnits || row >= job.p.rows || unit >= job.top.maxima_stride) continue;
    job.top.maxima[row * job.top.maxima_stride + unit] = mine;
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
